package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
)

// ReplicaRequirements is what one replica needs.
type ReplicaRequirements struct {
	// NodeClaim says on which nodes a replica may run. Unset means on any.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// ResourceRequest is what a replica requests, for each resource.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// Namespace is the namespace of the pods, whose ResourceQuota counts.
	// Filled in when the feature gate ResourceQuotaEstimate is on.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// PriorityClassName is the priority class of the pods. Filled in when the
	// feature gate ResourceQuotaEstimate is on.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// NodeClaim says on which nodes a replica may run.
type NodeClaim struct {
	// HardNodeAffinity is the required node affinity of the pods; preferences
	// are left out.
	// +optional
	HardNodeAffinity *corev1.NodeSelector `json:"hardNodeAffinity,omitempty"`

	// NodeSelector holds labels that the node must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations are the node taints that the pods tolerate.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// Component is a part of a workload with a pod template and replicas of its
// own, such as the job manager of a Flink cluster.
type Component struct {
	// Name is the name of the component; unique in the workload.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// Replicas is the number of replicas of the component.
	// +required
	Replicas int32 `json:"replicas"`

	// ReplicaRequirements is what one replica of the component needs.
	// +optional
	ReplicaRequirements *ComponentReplicaRequirements `json:"replicaRequirements,omitempty"`
}

// ComponentReplicaRequirements is what one replica of a component needs.
type ComponentReplicaRequirements struct {
	// NodeClaim says on which nodes a replica may run. Unset means on any.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// ResourceRequest is what a replica requests, for each resource.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// PriorityClassName is the priority class of the pods.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}
