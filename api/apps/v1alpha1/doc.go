// Package v1alpha1 holds the apps.karmada.io/v1alpha1 wire types: WorkloadRebalancer, which reschedules
// workloads at the request of a user.
//
// Field names, defaults and enums are a contract with stored objects and with
// clients of other releases: fields may be added, never renamed or retyped.
//
// +kubebuilder:object:generate=true
// +groupName=apps.karmada.io
package v1alpha1
