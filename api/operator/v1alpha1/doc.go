// Package v1alpha1 holds the operator.karmada.io/v1alpha1 wire types. One Karmada object is one
// control plane in the namespace of the object.
//
// Field names, defaults and enums are a contract with stored objects and with
// clients of other releases: fields may be added, never renamed or retyped.
//
// +kubebuilder:object:generate=true
// +groupName=operator.karmada.io
package v1alpha1
