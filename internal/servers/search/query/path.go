package query

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// nativePath is a parsed path of a Kubernetes API.
type nativePath struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// reviewNamespace returns the namespace in which the permission is reviewed. As in Kubernetes, a
// Namespace belongs to itself, so that a Role in the namespace can permit reading it.
func (p nativePath) reviewNamespace() string {
	if p.resource.Group == "" && p.resource.Resource == "namespaces" {
		return p.name
	}
	return p.namespace
}

// parseNativePath parses a path of the form api/{version}/… or apis/{group}/{version}/… that ends with
// a resource. A namespace before the resource and a name after it are optional.
func parseNativePath(path string) (nativePath, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	invalid := apierrors.NewBadRequest("invalid request parts: " +
		"use api/VERSION/RESOURCE or apis/GROUP/VERSION/RESOURCE, with namespaces/NAMESPACE/ before the resource and /NAME after it if needed")
	if slices.Contains(parts, "") {
		return nativePath{}, invalid
	}
	var parsed nativePath
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parsed.resource.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parsed.resource.Group, parsed.resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return nativePath{}, invalid
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		if parts[2] == "status" || parts[2] == "finalize" {
			return nativePath{}, invalid // a subresource of a Namespace
		}
		parsed.namespace, parts = parts[1], parts[2:]
	}
	parsed.resource.Resource = parts[0]
	switch len(parts) {
	case 1:
		return parsed, nil
	case 2:
		parsed.name = parts[1]
		return parsed, nil
	}
	return nativePath{}, invalid
}
