package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
)

// ReplicaRequirements are the requirements of one replica.
type ReplicaRequirements struct {
	// NodeClaim selects the nodes on which a replica may run. Unset means any
	// node.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// ResourceRequest is the resource requests of one replica.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// Namespace is the namespace of the pods. Its ResourceQuota limits the
	// replicas. Set when the feature gate ResourceQuotaEstimate is on.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// PriorityClassName is the priority class of the pods. Set when the feature
	// gate ResourceQuotaEstimate is on.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// NodeClaim selects the nodes on which a replica may run.
type NodeClaim struct {
	// HardNodeAffinity is the required node affinity of the pods. Preferred
	// terms are left out.
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

	// ReplicaRequirements are the requirements of one replica of the component.
	// +optional
	ReplicaRequirements *ComponentReplicaRequirements `json:"replicaRequirements,omitempty"`
}

// ComponentReplicaRequirements are the requirements of one replica of a
// component.
type ComponentReplicaRequirements struct {
	// NodeClaim selects the nodes on which a replica may run. Unset means any
	// node.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// ResourceRequest is the resource requests of one replica.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// PriorityClassName is the priority class of the pods.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}
