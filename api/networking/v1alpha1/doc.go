// Package v1alpha1 holds the networking.karmada.io/v1alpha1 wire types, which make Services reachable
// from other clusters and from outside.
//
// Field names, defaults and enums are a contract with stored objects and with
// clients of other releases: fields may be added, never renamed or retyped.
//
// +kubebuilder:object:generate=true
// +groupName=networking.karmada.io
package v1alpha1
