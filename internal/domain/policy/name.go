package policy

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/fnv"
)

// NameFor returns the name of the policy that karmadactl creates for one object: the
// name of the object and a hash of its kind and namespace. namespace is empty for a
// cluster-scoped object. The name is always the same for the same object.
func NameFor(kind schema.GroupVersionKind, namespace, name string) string {
	return nameFor(kind.String(), namespace, name)
}

func nameFor(kind, namespace, name string) string {
	return strings.ToLower(strings.ReplaceAll(name, ":", ".") + "-" + fnv.Encode(namespace+kind))
}
