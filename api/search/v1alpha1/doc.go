// Package v1alpha1 holds the search.karmada.io/v1alpha1 wire types. An aggregated API server
// serves them. It also checks enums and formats, because the types have no
// CustomResourceDefinition.
//
// Field names, defaults and enums are a contract with stored objects and with
// clients of other releases: fields may be added, never renamed or retyped.
//
// +kubebuilder:object:generate=true
// +kubebuilder:skip
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.karmada.search.v1alpha1
// +groupName=search.karmada.io
package v1alpha1
