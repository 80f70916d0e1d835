package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DependentObjectReference refers to objects that another object depends on in
// a member cluster, as a Deployment depends on its ConfigMap. It selects one
// object by name or several by label.
//
// A valid reference has apiVersion, kind, and a name or a valid label selector.
// When both are given, the label selector is ignored.
type DependentObjectReference struct {
	// APIVersion is the group and version of the objects, such as "v1" or
	// "apps/v1".
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind of the objects.
	// +required
	Kind string `json:"kind"`

	// Namespace is the namespace of the objects. Empty for a cluster-scoped
	// kind.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of one object.
	// +optional
	Name string `json:"name,omitempty"`

	// LabelSelector selects every object whose labels match. Ignored when a
	// name is given.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}
