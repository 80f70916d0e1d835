package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kinds of the answers of search/query.
const (
	// SearchResultListKind is the kind of an answer.
	SearchResultListKind = "SearchResultList"
)

// SearchResultList is the answer of search/query: the objects of all clusters that match a query,
// sorted by cluster, namespace, name and kind. It is never stored.
type SearchResultList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata.continue is the token of the next page. It is empty after the last page.
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the matching objects.
	Items []SearchResult `json:"items"`
}

// SearchResult is an object that matches a query.
type SearchResult struct {
	// kind is the kind of the object. In an event of a watch, it is also the kind of the object.
	Kind string `json:"kind"`
	// apiVersion is the version of the object.
	APIVersion string `json:"apiVersion"`
	// cluster is the name of the cluster that has the object.
	Cluster string `json:"cluster"`
	// namespace is the namespace of the object. It is empty for an object without a namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the object.
	Name string `json:"name"`
	// uid is the UID of the object in its cluster.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// creationTimestamp is the time at which the cluster created the object.
	// +optional
	CreationTimestamp *metav1.Time `json:"creationTimestamp,omitempty"`
	// matches says what matched. Values are shortened.
	// +optional
	Matches []SearchMatch `json:"matches,omitempty"`
	// staleSince is set if the cluster is not ready or cannot be watched. The object is as it was
	// at this time.
	// +optional
	StaleSince *metav1.Time `json:"staleSince,omitempty"`
}

// SearchMatch is a reason why an object matches a query.
type SearchMatch struct {
	// field is the field of the query, or the path at which text was found.
	Field string `json:"field"`
	// value is the value of the field. Long values are shortened.
	Value string `json:"value"`
}
