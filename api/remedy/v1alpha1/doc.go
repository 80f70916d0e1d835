// Package v1alpha1 holds the remedy.karmada.io/v1alpha1 wire types: actions for clusters whose conditions
// report trouble. Actions are published in the status of the Cluster for controllers that carry them out.
//
// Field names, defaults and enums are a contract with stored objects and with
// clients of other releases: fields may be added, never renamed or retyped.
//
// +kubebuilder:object:generate=true
// +groupName=remedy.karmada.io
package v1alpha1
