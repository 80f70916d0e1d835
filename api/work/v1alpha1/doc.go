// Package v1alpha1 holds Work of work.karmada.io/v1alpha1, a set of manifests for the cluster of
// its execution namespace. It also holds the first version of the bindings, which is still
// served, but stored as v1alpha2.
//
// Field names, defaults and enums are a contract with stored objects and with
// clients of other releases: fields may be added, never renamed or retyped.
//
// +kubebuilder:object:generate=true
// +groupName=work.karmada.io
package v1alpha1
