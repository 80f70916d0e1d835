package policy

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/fnv"
)

// NameFor is the name of the policy that a command line makes for one object: its
// name and a hash of its kind and namespace, which is empty for an object without
// one. The same object has the same policy every time.
func NameFor(kind schema.GroupVersionKind, namespace, name string) string {
	return nameFor(kind.String(), namespace, name)
}

func nameFor(kind, namespace, name string) string {
	return strings.ToLower(strings.ReplaceAll(name, ":", ".") + "-" + fnv.Encode(namespace+kind))
}
