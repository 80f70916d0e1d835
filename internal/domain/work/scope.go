package work

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ScopeError says that a member serves a kind in another scope than the one in which a
// manifest names its object. Sent there, the manifest would become an object that
// belongs to another namespace or to none. A user changes one of the two clusters.
type ScopeError struct {
	// Member serves Kind.
	Member, Group, Kind string
	// Path is the object: [namespace/]name.
	Path string
	// Namespaced is the scope in the member. The manifest has the other one.
	Namespaced bool
}

// CheckScope returns a ScopeError unless a member that serves a kind in that scope can
// hold the object of a manifest of this kind.
func CheckScope(member string, manifest *unstructured.Unstructured, namespaced bool) error {
	if namespaced == (manifest.GetNamespace() != "") {
		return nil
	}
	return &ScopeError{Member: member, Group: manifest.GroupVersionKind().Group, Kind: manifest.GetKind(), Path: path(manifest), Namespaced: namespaced}
}

// Error implements error.
func (e *ScopeError) Error() string {
	manifest, member := "Namespaced", "Cluster"
	if e.Namespaced {
		manifest, member = member, manifest
	}
	return fmt.Sprintf("%s %s was not sent to cluster %s: the object has scope %s, and the cluster serves kind %s of group %q with scope %s; install the CustomResourceDefinition there that the control plane has, or propagate the object to other clusters",
		e.Kind, e.Path, e.Member, manifest, e.Kind, e.Group, member)
}
