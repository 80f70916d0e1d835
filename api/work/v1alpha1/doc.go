// Package v1alpha1 answers: what is to be in one cluster, and how is it there?
// It holds Work of work.karmada.io/v1alpha1, a set of manifests for the cluster
// whose execution namespace it lies in. It also holds the first version of the
// bindings, which is still served, but stored as v1alpha2.
//
// Field names, defaults and enums are a contract with stored objects and with
// clients of other releases: fields may be added, never renamed or retyped.
//
// +kubebuilder:object:generate=true
// +groupName=work.karmada.io
package v1alpha1
