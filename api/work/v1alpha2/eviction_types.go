package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// GracefulEvictionTask is a cluster that an object is leaving. The task ends
// when the object is healthy in all its clusters, when the time is over, or
// when a user confirms it.
type GracefulEvictionTask struct {
	// FromCluster is the name of the cluster.
	// +required
	FromCluster string `json:"fromCluster"`

	// PurgeMode says what happens to the object in that cluster. Directly: it is
	// deleted before another cluster gets it. Gracefully: it is deleted when the
	// task ends. Never: the task ends only when a user confirms it.
	// +optional
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	PurgeMode policyv1alpha1.PurgeMode `json:"purgeMode,omitempty"`

	// Replicas is the number of replicas that the cluster had. Unset for objects
	// without replicas.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Reason says in one word why the object leaves the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
	Reason string `json:"reason"`

	// Message says to people why the object leaves the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// Producer is the controller that made the task.
	// +required
	Producer string `json:"producer"`

	// GracePeriodSeconds is the longest time, in seconds from creationTimestamp,
	// that the task takes. Unset means as the controller manager is configured
	// (600 by default).
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// SuppressDeletion true keeps the task until a user sets it to false; false
	// ends the task at once. Unset means that health and time end it.
	// +optional
	SuppressDeletion *bool `json:"suppressDeletion,omitempty"`

	// PreservedLabelState holds labels, taken from the status of the object,
	// that it gets in its next cluster.
	// +optional
	PreservedLabelState map[string]string `json:"preservedLabelState,omitempty"`

	// CreationTimestamp is when the task began. Set by the system.
	// +optional
	CreationTimestamp *metav1.Time `json:"creationTimestamp,omitempty"`

	// ClustersBeforeFailover are the clusters that the object went to before the
	// task: preservedLabelState is for new clusters only.
	// +optional
	ClustersBeforeFailover []string `json:"clustersBeforeFailover,omitempty"`
}
