package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Search gives access to the cached objects of all clusters. It is never
// stored. The part of a path after "search/cache" is the native path of the
// objects to read.
//
// +kubebuilder:object:root=true
type Search struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// Proxying gives access to the global proxy, which serves the objects of all
// clusters as one cluster. It is never stored. The part of a path after
// "proxying/<name>/proxy" is the native path of the request.
//
// +kubebuilder:object:root=true
type Proxying struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}
