// Package v1alpha2 answers: to which clusters is an object propagated, and what is its status there? It
// holds the bindings of work.karmada.io/v1alpha2, the version in which they are
// stored: a ResourceBinding or ClusterResourceBinding for each propagated object.
//
// Field names, defaults and enums are a contract with stored objects and with
// clients of other releases: fields may be added, never renamed or retyped.
//
// +kubebuilder:object:generate=true
// +groupName=work.karmada.io
package v1alpha2
