package tenancy

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Identity identifies an object in a cluster, regardless of its API version.
type Identity struct{ Group, Kind, Namespace, Name string }

// IdentityOf returns the identity of an object.
func IdentityOf(object *unstructured.Unstructured) Identity {
	kind := object.GroupVersionKind()
	return Identity{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// IdentityError describes one identity field in which a manifest differs from its template.
type IdentityError struct {
	// Path is the JSON pointer to the field.
	Path string
	// Field describes the field to users.
	Field string
	// Want is the value in the template. Got is the value in the manifest.
	Want, Got string
}

// Error implements error.
func (i IdentityError) Error() string {
	return fmt.Sprintf("the %s must stay %q, and is %q", i.Field, i.Want, i.Got)
}

// Violations returns an error for each identity field in which the manifest differs from the template,
// whose identity is i. The errors are in a fixed order.
func (i Identity) Violations(manifest Identity) []IdentityError {
	var violations []IdentityError
	for _, field := range []IdentityError{
		{"/apiVersion", "API group", i.Group, manifest.Group},
		{"/kind", "kind", i.Kind, manifest.Kind},
		{"/metadata/namespace", "namespace", i.Namespace, manifest.Namespace},
		{"/metadata/name", "name", i.Name, manifest.Name},
	} {
		if field.Want != field.Got {
			violations = append(violations, field)
		}
	}
	return violations
}

// GrantsRights reports whether objects of the given kind grant permissions in their namespace, set the
// namespace's limits, or redirect the namespace's traffic. An author who may write policies in a
// namespace may not write these objects: the Kubernetes roles edit and admin do not allow it, or the
// API server prevents privilege escalation. So an OverridePolicy must not write these objects either.
// The list contains only Kubernetes kinds, because it is not known which other kinds an author may not
// write.
func GrantsRights(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
		schema.GroupKind{Kind: "ResourceQuota"}, schema.GroupKind{Kind: "LimitRange"},
		schema.GroupKind{Kind: "Endpoints"}, schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:
		return true
	}
	return false
}

// FirstChangedField returns the first field, sorted by name, in which the two objects differ. Metadata
// and the API version are ignored.
func FirstChangedField(before, after *unstructured.Unstructured) (path string, changed bool) {
	fields := slices.Sorted(maps.Keys(before.Object))
	for field := range after.Object {
		if _, found := before.Object[field]; !found {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	for _, field := range fields {
		if field == "metadata" || field == "apiVersion" {
			continue
		}
		if !reflect.DeepEqual(before.Object[field], after.Object[field]) {
			return "/" + field, true
		}
	}
	return "", false
}
