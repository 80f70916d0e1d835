package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// ResourceRegistry defines the kinds and clusters whose objects are cached for
// search and for the global proxy, and an additional store for them.
//
// +kubebuilder:object:root=true
type ResourceRegistry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines the objects to cache.
	// +optional
	Spec ResourceRegistrySpec `json:"spec,omitempty"`

	// Status is the status of the cache.
	// +optional
	Status ResourceRegistryStatus `json:"status,omitempty"`
}

// ResourceRegistrySpec defines the objects to cache.
type ResourceRegistrySpec struct {
	// TargetCluster selects the clusters. An empty one selects every cluster.
	// +required
	TargetCluster policyv1alpha1.ClusterAffinity `json:"targetCluster"`

	// ResourceSelectors are the kinds to cache. Kinds that a cluster does not
	// serve are skipped for that cluster.
	// +required
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// BackendStore is an additional store for the cached objects. Unset means
	// none.
	// +optional
	BackendStore *BackendStoreConfig `json:"backendStore,omitempty"`
}

// ResourceSelector selects the objects of one kind.
type ResourceSelector struct {
	// APIVersion is the group and version of the kind, such as "apps/v1".
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind, such as "Deployment".
	// +required
	Kind string `json:"kind"`

	// Namespace restricts the cache of the global proxy to one namespace. Empty
	// means all namespaces. Search always caches all namespaces. Ignored for
	// cluster-scoped kinds.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// BackendStoreConfig is an additional store for the cached objects.
type BackendStoreConfig struct {
	// OpenSearch stores the objects in an OpenSearch cluster.
	// +optional
	OpenSearch *OpenSearchConfig `json:"openSearch,omitempty"`
}

// OpenSearchConfig holds the address and the credentials of an OpenSearch
// cluster.
type OpenSearchConfig struct {
	// Addresses are the http or https URLs of its nodes, at least one.
	// +required
	Addresses []string `json:"addresses"`

	// SecretRef refers to the Secret in the control plane that holds the
	// credentials under the keys "username" and "password". When the Secret
	// does not exist, no credentials are sent.
	// +required
	SecretRef clusterv1alpha1.LocalSecretReference `json:"secretRef"`
}

// ResourceRegistryStatus is the status of the cache.
type ResourceRegistryStatus struct {
	// Conditions contains Cached: whether the objects of all selected kinds are
	// cached in all selected clusters.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Clusters are the selected clusters, sorted by name. They have at most 2000
	// entries in all. If there are more, entries without a problem are left out.
	// +optional
	Clusters []RegistryClusterStatus `json:"clusters,omitempty"`
}

// RegistryClusterStatus is the status of the cache for one cluster.
type RegistryClusterStatus struct {
	// Name is the name of the cluster.
	// +required
	Name string `json:"name"`

	// Kinds are the selected kinds, sorted by apiVersion and kind.
	// +optional
	Kinds []RegistryKindStatus `json:"kinds,omitempty"`
}

// RegistryKindStatus is the status of the cache for one kind in one cluster.
type RegistryKindStatus struct {
	// APIVersion is the group and version of the kind, such as "apps/v1".
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind, such as "Deployment".
	// +required
	Kind string `json:"kind"`

	// State is Waiting (the objects were never listed), Current (the objects are
	// watched), Stale (the objects were listed, but are not watched now), or
	// NotServed (the cluster does not serve the kind, or the selector is
	// invalid).
	// +required
	State RegistryKindState `json:"state"`

	// Since is the time at which the state began.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Objects is the number of cached objects. It is written when it differs by
	// more than 10 percent and at least 10 objects, or after an hour. A status with
	// more than 200 kinds of clusters is written more rarely.
	// +optional
	Objects int64 `json:"objects,omitempty"`

	// Bytes is the memory of the compressed objects in bytes. It is written as
	// rarely as objects.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`

	// Message is what is wrong. It is empty for Current.
	// +optional
	Message string `json:"message,omitempty"`
}

// ResourceRegistryList is a list of registries.
//
// +kubebuilder:object:root=true
type ResourceRegistryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the registries.
	Items []ResourceRegistry `json:"items"`
}
