package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadRebalancer requests a fresh scheduling of workloads: the scheduler
// places their replicas as if for the first time and ignores their current
// clusters. It triggers one scheduling of each workload in the list.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=workloadrebalancers,scope=Cluster
// +kubebuilder:storageversion
type WorkloadRebalancer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec lists the workloads to rebalance.
	// +required
	Spec WorkloadRebalancerSpec `json:"spec"`

	// Status lists the workloads for which a scheduling was triggered.
	// +optional
	Status WorkloadRebalancerStatus `json:"status,omitempty"`
}

// WorkloadRebalancerSpec lists the workloads to rebalance.
type WorkloadRebalancerSpec struct {
	// Workloads are the workloads to rebalance, at least one. When the list is
	// changed later, only the added workloads are rebalanced.
	// +required
	// +kubebuilder:validation:MinItems=1
	Workloads []ObjectReference `json:"workloads"`

	// TTLSecondsAfterFinished is the time in seconds after which the rebalancer
	// is deleted, counted from status.finishTime. 0 deletes it at once. Unset
	// keeps it for ever.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ObjectReference refers to one workload in the control plane.
type ObjectReference struct {
	// APIVersion is the group and version of the workload, such as "apps/v1".
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind of the workload, such as "Deployment".
	// +required
	Kind string `json:"kind"`

	// Name is the name of the workload.
	// +required
	Name string `json:"name"`

	// Namespace is the namespace of the workload. Empty for a cluster-scoped
	// workload.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// WorkloadRebalancerStatus reports the progress of the rebalancing.
type WorkloadRebalancerStatus struct {
	// ObservedWorkloads holds one result for each workload, sorted by
	// apiVersion, kind, namespace and name. A workload that was rebalanced and
	// then removed from the spec stays in the list.
	// +optional
	ObservedWorkloads []ObservedWorkload `json:"observedWorkloads,omitempty"`

	// ObservedGeneration is the generation of the spec that this status
	// describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// FinishTime is the time at which the last workload got its result. Unset
	// while a workload has no result.
	// +optional
	FinishTime *metav1.Time `json:"finishTime,omitempty"`
}

// ObservedWorkload is the result for one workload.
type ObservedWorkload struct {
	// Workload is the workload that the result describes.
	// +required
	Workload ObjectReference `json:"workload"`

	// Result is Successful when a fresh scheduling was triggered, and Failed
	// when it cannot be triggered. Successful does not mean that the scheduling
	// is complete or that replicas moved. Empty while the workload waits.
	// +optional
	Result RebalanceResult `json:"result,omitempty"`

	// Reason is the reason why the result is Failed. ReferencedBindingNotFound
	// means that the workload has no binding, because no policy propagates it.
	// +optional
	Reason RebalanceFailedReason `json:"reason,omitempty"`
}

// RebalanceResult is the result of triggering the rebalancing of a workload.
type RebalanceResult string

const (
	// RebalanceSuccessful means that a fresh scheduling was triggered.
	RebalanceSuccessful RebalanceResult = "Successful"
	// RebalanceFailed means that no scheduling can be triggered; it is final.
	RebalanceFailed RebalanceResult = "Failed"
)

// RebalanceFailedReason is the reason why the rebalancing of a workload failed.
type RebalanceFailedReason string

// RebalanceObjectNotFound means that the workload has no binding.
const RebalanceObjectNotFound RebalanceFailedReason = "ReferencedBindingNotFound"

// WorkloadRebalancerList is a list of rebalancers.
//
// +kubebuilder:object:root=true
type WorkloadRebalancerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the rebalancers.
	Items []WorkloadRebalancer `json:"items"`
}
