package work

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/binding"
)

// Name returns the name of the Work for an object: the name of the object and a hash of its kind,
// namespace and name, all in lower case. The API group is not part of the hash.
func Name(kind, namespace, name string) string {
	identity := strings.ToLower(strings.ReplaceAll(name, ":", ".") + "-" + kind)
	if namespace != "" {
		identity = strings.ToLower(namespace) + "-" + identity
	}
	return binding.NameWithSuffix(name, binding.ShortHash(identity))
}

// Names returns the names that the Work of an object can have. The first is Name. The second
// contains a hash of the exact identity, and belongs to a binding with the second of binding.Names.
func Names(kind schema.GroupKind, namespace, name string) [2]string {
	usual := Name(kind.Kind, namespace, name)
	return [2]string{usual, binding.UnambiguousName(usual, kind.Group, kind.Kind, namespace, name)}
}
