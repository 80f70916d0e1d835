package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// GracefulEvictionTask is the eviction of an object from one cluster. The task
// ends when the object is healthy in all its clusters, when the grace period is
// over, or when a user confirms it.
type GracefulEvictionTask struct {
	// FromCluster is the name of the cluster.
	// +required
	FromCluster string `json:"fromCluster"`

	// PurgeMode defines when the object is deleted in that cluster. Directly:
	// before another cluster gets it. Gracefully: when the task ends. Never:
	// the task ends only when a user confirms it.
	// +optional
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	PurgeMode policyv1alpha1.PurgeMode `json:"purgeMode,omitempty"`

	// Replicas is the number of replicas that the cluster had. Unset for objects
	// without replicas.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Reason is the reason of the eviction, in one word.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
	Reason string `json:"reason"`

	// Message is the reason of the eviction, for humans.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// Producer is the controller that created the task.
	// +required
	Producer string `json:"producer"`

	// GracePeriodSeconds is the longest duration of the task, in seconds from
	// creationTimestamp. Unset means the value that the controller manager is
	// configured with (600 by default).
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// SuppressDeletion true keeps the task until a user sets it to false; false
	// ends the task at once. Unset means that the task ends when the object is
	// healthy or the grace period is over.
	// +optional
	SuppressDeletion *bool `json:"suppressDeletion,omitempty"`

	// PreservedLabelState holds the labels that the object gets in its new
	// cluster. Their values are copied from its status.
	// +optional
	PreservedLabelState map[string]string `json:"preservedLabelState,omitempty"`

	// CreationTimestamp is the time at which the task began. Set by the system.
	// +optional
	CreationTimestamp *metav1.Time `json:"creationTimestamp,omitempty"`

	// ClustersBeforeFailover are the clusters of the object before the task.
	// preservedLabelState applies only to other clusters.
	// +optional
	ClustersBeforeFailover []string `json:"clustersBeforeFailover,omitempty"`
}
