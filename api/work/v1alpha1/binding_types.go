package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ResourceBinding is the first version of the binding of a namespaced object.
// Use v1alpha2, which says more.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={karmada-io},shortName=rb
type ResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what goes where.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// Status is how it is there.
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
// cluster-scoped object. Use v1alpha2, which says more.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope="Cluster",categories={karmada-io},shortName=crb
type ClusterResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what goes where.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// Status is how it is there.
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

// ResourceBindingSpec is what goes where.
type ResourceBindingSpec struct {
	// Resource is the object in the control plane that is propagated.
	// +required
	Resource ObjectReference `json:"resource"`

	// Clusters are the clusters that the object goes to.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// ObjectReference points to an object in the control plane and says what its
// replicas need.
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

	// ResourceVersion is the version of the object that the binding was last
	// made from.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`

	// ReplicaResourceRequirements is what one replica requests, for each
	// resource.
	// +optional
	ReplicaResourceRequirements corev1.ResourceList `json:"resourcePerReplicas,omitempty"`

	// Replicas is the number of replicas that the object asks for in all. 0 for
	// objects without replicas.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
}

// TargetCluster is a cluster that an object goes to.
type TargetCluster struct {
	// Name is the name of the cluster.
	// +required
	Name string `json:"name"`

	// Replicas is the number of replicas that the cluster gets. 0 for objects
	// without replicas.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
}

// ResourceBindingStatus is how an object is in its clusters.
type ResourceBindingStatus struct {
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
}
