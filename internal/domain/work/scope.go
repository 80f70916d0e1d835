package work

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ScopeError reports that a kind is namespaced in a member and the manifest is cluster-scoped, or vice
// versa. Such a manifest is not sent, because the member would store it as an object of another
// namespace or of no namespace. A user must change the scope of the kind in one of the two clusters.
type ScopeError struct {
	// Member is the cluster that serves Kind.
	Member, Group, Kind string
	// Path identifies the object: [namespace/]name.
	Path string
	// Namespaced is the kind's scope in the member. The manifest has the opposite scope.
	Namespaced bool
}

// ValidateScope returns a *ScopeError unless the manifest has the scope that its kind has in the
// member.
func ValidateScope(member string, manifest *unstructured.Unstructured, namespaced bool) error {
	if namespaced == (manifest.GetNamespace() != "") {
		return nil
	}
	return &ScopeError{Member: member, Group: manifest.GroupVersionKind().Group, Kind: manifest.GetKind(), Path: objectPath(manifest),
		Namespaced: namespaced}
}

// Error implements error.
func (s *ScopeError) Error() string {
	manifest, member := "Namespaced", "Cluster"
	if s.Namespaced {
		manifest, member = member, manifest
	}
	return fmt.Sprintf("%s %s was not sent to cluster %s: the object has scope %s, and the cluster serves kind %s of group %q with scope %s; install the CustomResourceDefinition there that the control plane has, or propagate the object to other clusters",
		s.Kind, s.Path, s.Member, manifest, s.Kind, s.Group, member)
}
