// Package v1alpha1 holds the multicluster.x-k8s.io/v1alpha1 wire types in the shape that the
// control plane serves, which is an early form of the multi-cluster services API of Kubernetes
// SIG Multicluster.
//
// Field names, defaults and enums are a contract with stored objects and with
// clients of other releases: fields may be added, never renamed or retyped.
//
// +kubebuilder:object:generate=true
// +groupName=multicluster.x-k8s.io
package v1alpha1
