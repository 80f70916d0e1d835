package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ResourceBindingStatus is the scheduling status of an object and its status in
// its clusters.
type ResourceBindingStatus struct {
	// SchedulerObservedGeneration is the generation of the binding that the
	// scheduler processed last.
	// +optional
	SchedulerObservedGeneration int64 `json:"schedulerObservedGeneration,omitempty"`

	// SchedulerObservedAffinityName is the name of the group of
	// clusterAffinities in use.
	// +optional
	SchedulerObservedAffinityName string `json:"schedulerObservingAffinityName,omitempty"`

	// LastScheduledTime is the time at which the scheduler last placed the
	// object.
	// +optional
	LastScheduledTime *metav1.Time `json:"lastScheduledTime,omitempty"`

	// Conditions are Scheduled (the scheduler has placed the object) and
	// FullyApplied (all clusters have it).
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// AggregatedStatus holds the status of the object in each cluster, sorted
	// by cluster name.
	// +optional
	AggregatedStatus []AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// AggregatedStatusItem is the status of an object in one cluster.
type AggregatedStatusItem struct {
	// ClusterName is the name of the cluster.
	// +required
	ClusterName string `json:"clusterName"`

	// Status holds the fields of the object's status that are collected for its
	// kind.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Applied reports whether the current manifest of the object is applied in
	// the cluster.
	// +optional
	Applied bool `json:"applied,omitempty"`

	// AppliedMessage is the reason why the manifest is not applied, for humans.
	// +optional
	AppliedMessage string `json:"appliedMessage,omitempty"`

	// Health is Healthy, Unhealthy, or Unknown while the health is not known.
	// +optional
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	Health ResourceHealth `json:"health,omitempty"`
}

// ResourceHealth is the health of an object in a cluster.
type ResourceHealth string

// Values of ResourceHealth.
const (
	// ResourceHealthy means that the object is healthy.
	ResourceHealthy ResourceHealth = "Healthy"
	// ResourceUnhealthy means that the object is not healthy.
	ResourceUnhealthy ResourceHealth = "Unhealthy"
	// ResourceUnknown means that the health of the object is not known.
	ResourceUnknown ResourceHealth = "Unknown"
)
