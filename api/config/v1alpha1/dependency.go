package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DependentObjectReference points at objects that another object needs beside
// it in a member cluster, as a Deployment needs its ConfigMap. It names one
// object by name or many by label.
//
// A usable reference has apiVersion, kind, and a name or a valid label
// selector; when both are given the name decides.
type DependentObjectReference struct {
	// APIVersion is the group and version of the objects, such as "v1" or
	// "apps/v1".
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind of the objects.
	// +required
	Kind string `json:"kind"`

	// Namespace holds the objects. It is empty for a cluster-scoped kind.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name selects the one object of that name.
	// +optional
	Name string `json:"name,omitempty"`

	// LabelSelector selects every object whose labels match. It is read only
	// when no name is given.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}
