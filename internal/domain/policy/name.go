package policy

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/fnv"
)

// GeneratedName returns the name of the policy that karmadactl creates for one object: the
// name of the object and a hash of its kind and namespace. namespace is empty for a
// cluster-scoped object. The name is always the same for the same object.
func GeneratedName(kind schema.GroupVersionKind, namespace, name string) string {
	return generatedName(kind.String(), namespace, name)
}

func generatedName(kind, namespace, name string) string {
	return strings.ToLower(strings.ReplaceAll(name, ":", ".") + "-" + fnv.Encode(namespace+kind))
}
