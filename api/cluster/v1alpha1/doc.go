// Package v1alpha1 holds Cluster of cluster.karmada.io/v1alpha1, which the aggregated API server
// serves and stores.
//
// The aggregated API server also uses these Go types as its internal version, so
// that there is nothing to convert. Field names are a contract with stored
// objects and with clients of other releases: fields may be added, never renamed
// or retyped.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.karmada.cluster.v1alpha1
// +groupName=cluster.karmada.io
package v1alpha1
