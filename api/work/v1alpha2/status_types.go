package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ResourceBindingStatus is how an object was placed and how it is in its
// clusters.
type ResourceBindingStatus struct {
	// SchedulerObservedGeneration is the generation of the binding that the
	// scheduler has dealt with.
	// +optional
	SchedulerObservedGeneration int64 `json:"schedulerObservedGeneration,omitempty"`

	// SchedulerObservedAffinityName is the group of clusterAffinities in use.
	// +optional
	SchedulerObservedAffinityName string `json:"schedulerObservingAffinityName,omitempty"`

	// LastScheduledTime is when the scheduler last placed the object.
	// +optional
	LastScheduledTime *metav1.Time `json:"lastScheduledTime,omitempty"`

	// Conditions are Scheduled (the scheduler has placed the object) and
	// FullyApplied (all clusters have it).
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// AggregatedStatus is how the object is in each of its clusters, in order of
	// their names.
	// +optional
	AggregatedStatus []AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// AggregatedStatusItem is how an object is in one cluster.
type AggregatedStatusItem struct {
	// ClusterName is the name of the cluster.
	// +required
	ClusterName string `json:"clusterName"`

	// Status is the status of the object in the cluster, as far as it is
	// collected for its kind.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Applied says that the cluster has the object in its present form.
	// +optional
	Applied bool `json:"applied,omitempty"`

	// AppliedMessage says to people why the cluster does not have it.
	// +optional
	AppliedMessage string `json:"appliedMessage,omitempty"`

	// Health is Healthy, Unhealthy, or Unknown as long as nothing is known.
	// +optional
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	Health ResourceHealth `json:"health,omitempty"`
}

// ResourceHealth says whether an object does in a cluster what it is for.
type ResourceHealth string

// Values of ResourceHealth.
const (
	// ResourceHealthy is for an object that works.
	ResourceHealthy ResourceHealth = "Healthy"
	// ResourceUnhealthy is for an object that does not work.
	ResourceUnhealthy ResourceHealth = "Unhealthy"
	// ResourceUnknown is for an object of which nothing is known.
	ResourceUnknown ResourceHealth = "Unknown"
)
