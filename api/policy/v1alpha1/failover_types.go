package v1alpha1

// FailoverBehavior defines what happens when a cluster, or the application in
// it, fails.
type FailoverBehavior struct {
	// Application moves the application away from clusters in which it stays
	// unhealthy. It needs propagateDeps: true. Unset means that an unhealthy
	// application stays where it is.
	// +optional
	Application *ApplicationFailoverBehavior `json:"application,omitempty"`

	// Cluster defines how the application leaves a cluster that has NoExecute
	// taints. Unset means that the settings of the controller manager apply.
	// +optional
	Cluster *ClusterFailoverBehavior `json:"cluster,omitempty"`
}

// ApplicationFailoverBehavior defines when and how an unhealthy application
// leaves a cluster.
type ApplicationFailoverBehavior struct {
	// DecisionConditions define when the application leaves the cluster.
	// +required
	DecisionConditions DecisionConditions `json:"decisionConditions"`

	// PurgeMode defines when the application is deleted in the old cluster.
	// Directly: before another cluster gets it. Gracefully: when it is healthy
	// in another cluster, or when the grace period is over. Never: only when a
	// user confirms the deletion. Default Gracefully.
	// +optional
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	// +kubebuilder:default="Gracefully"
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// GracePeriodSeconds is the longest time, in seconds, that the application
	// stays in the old cluster when purgeMode is Gracefully. Greater than 0;
	// forbidden with other modes. Default 600.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// StatePreservation copies fields of the application's status to labels of
	// the object in the new cluster. It needs the feature gate
	// StatefulFailoverInjection.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// DecisionConditions define when an application leaves a cluster.
type DecisionConditions struct {
	// TolerationSeconds is how long, in seconds, the application may be
	// unhealthy before it leaves the cluster. At least 0. Default 300.
	// +optional
	// +kubebuilder:default=300
	TolerationSeconds *int32 `json:"tolerationSeconds,omitempty"`
}

// ClusterFailoverBehavior defines how an application leaves a failed cluster.
type ClusterFailoverBehavior struct {
	// PurgeMode defines when the application is deleted in the old cluster.
	// Directly: before another cluster gets it; the failover waits until the
	// old cluster is reachable. Gracefully: when it is healthy in another
	// cluster, or when the grace period is over. Default Gracefully.
	// +optional
	// +kubebuilder:validation:Enum=Directly;Gracefully
	// +kubebuilder:default="Gracefully"
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// StatePreservation copies fields of the application's status to labels of
	// the object in the new cluster. It needs the feature gate
	// StatefulFailoverInjection.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// PurgeMode defines when an application is deleted in the cluster that it
// leaves.
type PurgeMode string

// Values of PurgeMode.
const (
	// PurgeModeDirectly deletes the application in the old cluster first.
	PurgeModeDirectly PurgeMode = "Directly"
	// PurgeModeGracefully deletes the application in the old cluster when it is
	// healthy in another cluster, or after the grace period.
	PurgeModeGracefully PurgeMode = "Gracefully"
	// PurgeModeNever keeps the application in the old cluster until a user
	// confirms its deletion.
	PurgeModeNever PurgeMode = "Never"
)

// StatePreservation lists the fields of an application's status that are copied
// to labels of the object in the new cluster.
type StatePreservation struct {
	// Rules select the fields. When one of the fields cannot be read, the
	// application stays in the cluster and the failover is retried.
	// +required
	Rules []StatePreservationRule `json:"rules"`
}

// StatePreservationRule copies one field of the status to a label.
type StatePreservationRule struct {
	// AliasLabelName is the key of the label that the object gets in the new
	// cluster.
	// +required
	AliasLabelName string `json:"aliasLabelName"`

	// JSONPath is the path of the field in the status of the object, in the
	// notation of kubectl, such as {.checkpoint.id}. The root is the status
	// itself. The value must be a valid label value.
	// +required
	JSONPath string `json:"jsonPath"`
}
