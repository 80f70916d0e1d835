package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// ResourceRegistry says which kinds of objects of which clusters are cached for
// search and for the global proxy, and where else they are stored.
//
// +kubebuilder:object:root=true
type ResourceRegistry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is cached.
	// +optional
	Spec ResourceRegistrySpec `json:"spec,omitempty"`

	// Status tells how the caching fares.
	// +optional
	Status ResourceRegistryStatus `json:"status,omitempty"`
}

// ResourceRegistrySpec says what is cached.
type ResourceRegistrySpec struct {
	// TargetCluster selects the clusters. An empty one selects every cluster.
	// +required
	TargetCluster policyv1alpha1.ClusterAffinity `json:"targetCluster"`

	// ResourceSelectors are the kinds to cache. Kinds that a cluster does not
	// serve are left out there.
	// +required
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// BackendStore is where objects are stored besides the cache. Unset means
	// nowhere.
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

	// Namespace restricts what the global proxy caches to one namespace. Empty
	// means all of them. Search caches all namespaces in any case. It has no
	// meaning for a kind without namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// BackendStoreConfig is where objects are stored besides the cache.
type BackendStoreConfig struct {
	// OpenSearch stores them in an OpenSearch cluster.
	// +optional
	OpenSearch *OpenSearchConfig `json:"openSearch,omitempty"`
}

// OpenSearchConfig is how to reach an OpenSearch cluster.
type OpenSearchConfig struct {
	// Addresses are the http or https URLs of its nodes, at least one.
	// +required
	Addresses []string `json:"addresses"`

	// SecretRef names the Secret in the control plane that holds the
	// credentials under the keys "username" and "password". Without such a
	// Secret no credentials are sent.
	// +required
	SecretRef clusterv1alpha1.LocalSecretReference `json:"secretRef"`
}

// ResourceRegistryStatus tells how the caching fares.
type ResourceRegistryStatus struct {
	// Conditions are reserved: nothing is reported at present.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
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
