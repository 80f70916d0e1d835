// Package v1alpha2 holds the bindings of work.karmada.io/v1alpha2, the version in which they are
// stored: a ResourceBinding or ClusterResourceBinding for each propagated object.
//
// Field names, defaults and enums are a contract with stored objects and with
// clients of other releases: fields may be added, never renamed or retyped.
//
// +kubebuilder:object:generate=true
// +groupName=work.karmada.io
package v1alpha2
