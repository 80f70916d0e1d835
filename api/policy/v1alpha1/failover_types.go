package v1alpha1

// FailoverBehavior says what happens when a cluster, or the application in it,
// fails.
type FailoverBehavior struct {
	// Application moves the application away from clusters in which it stays
	// unhealthy. It needs propagateDeps: true. Unset means that an unhealthy
	// application stays where it is.
	// +optional
	Application *ApplicationFailoverBehavior `json:"application,omitempty"`

	// Cluster says how the application leaves a cluster that has NoExecute
	// taints. Unset means as the controller manager is configured.
	// +optional
	Cluster *ClusterFailoverBehavior `json:"cluster,omitempty"`
}

// ApplicationFailoverBehavior says when and how an unhealthy application leaves
// a cluster.
type ApplicationFailoverBehavior struct {
	// DecisionConditions say when the application leaves the cluster.
	// +required
	DecisionConditions DecisionConditions `json:"decisionConditions"`

	// PurgeMode says what happens to the application in the old cluster.
	// Directly: it is deleted before another cluster gets it. Gracefully: it
	// is deleted when it is healthy elsewhere, or the grace period is over.
	// Never: it stays until a user confirms its deletion. Default Gracefully.
	// +optional
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	// +kubebuilder:default="Gracefully"
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// GracePeriodSeconds is the longest time, in seconds, that the application
	// stays in the old cluster when purgeMode is Gracefully. Greater than 0;
	// forbidden with other modes. Default 600.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// StatePreservation carries parts of the application's status over to the
	// next cluster as labels. It needs the feature gate
	// StatefulFailoverInjection.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// DecisionConditions say when an application leaves a cluster.
type DecisionConditions struct {
	// TolerationSeconds is how long, in seconds, the application may be
	// unhealthy before it leaves the cluster. At least 0. Default 300.
	// +optional
	// +kubebuilder:default=300
	TolerationSeconds *int32 `json:"tolerationSeconds,omitempty"`
}

// ClusterFailoverBehavior says how an application leaves a failed cluster.
type ClusterFailoverBehavior struct {
	// PurgeMode says what happens to the application in the old cluster.
	// Directly: it is deleted before another cluster gets it, which waits for
	// the old cluster to be reachable. Gracefully: it is deleted when it is
	// healthy elsewhere, or the grace period is over. Default Gracefully.
	// +optional
	// +kubebuilder:validation:Enum=Directly;Gracefully
	// +kubebuilder:default="Gracefully"
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// StatePreservation carries parts of the application's status over to the
	// next cluster as labels. It needs the feature gate
	// StatefulFailoverInjection.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// PurgeMode says what happens in the cluster that an application leaves.
type PurgeMode string

// Values of PurgeMode.
const (
	// PurgeModeDirectly deletes the application in the old cluster first.
	PurgeModeDirectly PurgeMode = "Directly"
	// PurgeModeGracefully deletes the application in the old cluster when it is
	// healthy elsewhere, or after the grace period.
	PurgeModeGracefully PurgeMode = "Gracefully"
	// PurgeModeNever keeps the application in the old cluster until a user
	// confirms its deletion.
	PurgeModeNever PurgeMode = "Never"
)

// StatePreservation says which parts of an application's status are carried
// over to the next cluster.
type StatePreservation struct {
	// Rules are the parts. When one of them cannot be read the application stays
	// in the cluster and is tried again.
	// +required
	Rules []StatePreservationRule `json:"rules"`
}

// StatePreservationRule carries one part of the status over as a label.
type StatePreservationRule struct {
	// AliasLabelName is the key of the label that the object gets in the next
	// cluster.
	// +required
	AliasLabelName string `json:"aliasLabelName"`

	// JSONPath finds the value in the status of the object, in the notation of
	// kubectl, such as {.checkpoint.id}. The root is the status itself. The
	// value must be valid as a label value.
	// +required
	JSONPath string `json:"jsonPath"`
}
