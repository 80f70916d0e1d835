package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ResourceBinding is the first version of the binding of a namespaced object.
// Use v1alpha2.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={karmada-io},shortName=rb
type ResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines the object and its clusters.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// Status is the status of the object in its clusters.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ResourceBindingList is a list of ResourceBinding.
//
// +kubebuilder:object:root=true
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the bindings.
	Items []ResourceBinding `json:"items"`
}

// ClusterResourceBinding is the first version of the binding of a
// cluster-scoped object. Use v1alpha2.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope="Cluster",categories={karmada-io},shortName=crb
type ClusterResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines the object and its clusters.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// Status is the status of the object in its clusters.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ClusterResourceBindingList is a list of ClusterResourceBinding.
//
// +kubebuilder:object:root=true
type ClusterResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the bindings.
	Items []ClusterResourceBinding `json:"items"`
}

// ResourceBindingSpec defines the object and its clusters.
type ResourceBindingSpec struct {
	// Resource is the object in the control plane that is propagated.
	// +required
	Resource ObjectReference `json:"resource"`

	// Clusters are the clusters that the object is propagated to.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// ObjectReference refers to an object in the control plane and holds the
// requirements of its replicas.
type ObjectReference struct {
	// APIVersion is the group and version of the object, such as apps/v1.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind of the object.
	// +required
	Kind string `json:"kind"`

	// Namespace is the namespace of the object; empty when it is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of the object.
	// +required
	Name string `json:"name"`

	// ResourceVersion is the resourceVersion of the object when the binding was
	// last updated from it.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`

	// ReplicaResourceRequirements are the resource requests of one replica.
	// +optional
	ReplicaResourceRequirements corev1.ResourceList `json:"resourcePerReplicas,omitempty"`

	// Replicas is the desired total number of replicas. 0 for objects without
	// replicas.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
}

// TargetCluster is a cluster that an object is propagated to.
type TargetCluster struct {
	// Name is the name of the cluster.
	// +required
	Name string `json:"name"`

	// Replicas is the number of replicas that the cluster gets. 0 for objects
	// without replicas.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
}

// ResourceBindingStatus is the status of an object in its clusters.
type ResourceBindingStatus struct {
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
}
