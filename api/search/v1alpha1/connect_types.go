package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Search is the entry to the cached objects of all clusters. It is never
// stored: what follows "search/cache" in a path is a native path of the objects
// to read.
//
// +kubebuilder:object:root=true
type Search struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// Proxying is the entry to the global proxy, which answers as if all clusters
// were one. It is never stored: what follows "proxying/<name>/proxy" in a path
// is the native path of the request.
//
// +kubebuilder:object:root=true
type Proxying struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}
