package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadRebalancer asks for a fresh scheduling of some workloads: the
// scheduler places their replicas as if for the first time, instead of keeping
// them where they are. It acts once on each workload listed, not continuously.
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

	// Status tells for which workloads a scheduling was triggered.
	// +optional
	Status WorkloadRebalancerStatus `json:"status,omitempty"`
}

// WorkloadRebalancerSpec lists workloads to rebalance.
type WorkloadRebalancerSpec struct {
	// Workloads are the workloads to rebalance, at least one. When the list is
	// changed later, only workloads that are new in it are acted upon.
	// +required
	// +kubebuilder:validation:MinItems=1
	Workloads []ObjectReference `json:"workloads"`

	// TTLSecondsAfterFinished is the time in seconds after which the rebalancer
	// is deleted, counted from status.finishTime. 0 deletes it at once. Unset
	// keeps it for ever.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ObjectReference names one workload in the control plane.
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

	// Namespace is the namespace of the workload. It is empty for a workload
	// without namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// WorkloadRebalancerStatus tells how far the rebalancing has got.
type WorkloadRebalancerStatus struct {
	// ObservedWorkloads holds one result for each workload, sorted by
	// apiVersion, kind, namespace and name. A workload that was rebalanced and
	// then left the spec stays in the list.
	// +optional
	ObservedWorkloads []ObservedWorkload `json:"observedWorkloads,omitempty"`

	// ObservedGeneration is the generation of the spec that this status is
	// about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// FinishTime is when the last workload got its result. It is unset while a
	// workload is left to handle.
	// +optional
	FinishTime *metav1.Time `json:"finishTime,omitempty"`
}

// ObservedWorkload is the result for one workload.
type ObservedWorkload struct {
	// Workload is the workload in question.
	// +required
	Workload ObjectReference `json:"workload"`

	// Result is Successful when a fresh scheduling was triggered, which does
	// not mean that it is over or moved anything, and Failed when it cannot be.
	// It is empty while the workload waits for its turn.
	// +optional
	Result RebalanceResult `json:"result,omitempty"`

	// Reason tells why the result is Failed. ReferencedBindingNotFound means
	// that no policy has propagated such a workload.
	// +optional
	Reason RebalanceFailedReason `json:"reason,omitempty"`
}

// RebalanceResult is how triggering the rebalancing of a workload ended.
type RebalanceResult string

const (
	// RebalanceSuccessful means that a fresh scheduling was triggered.
	RebalanceSuccessful RebalanceResult = "Successful"
	// RebalanceFailed means that no scheduling can be triggered; it is final.
	RebalanceFailed RebalanceResult = "Failed"
)

// RebalanceFailedReason is why the rebalancing of a workload failed.
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
