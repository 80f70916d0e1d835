package work

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/binding"
)

// Name returns the Work name for an object: the object's name and a hash of its kind, namespace and
// name, all in lower case. The API group is not part of the hash.
func Name(kind, namespace, name string) string {
	identity := strings.ToLower(strings.ReplaceAll(name, ":", ".") + "-" + kind)
	if namespace != "" {
		identity = strings.ToLower(namespace) + "-" + identity
	}
	return binding.NameWithSuffix(name, binding.ShortHash(identity))
}

// Names returns the two names that an object's Work can have. The first is Name, and the second
// contains a hash of the exact identity. The Work has the second name if its binding has the second of
// binding.Names.
func Names(kind schema.GroupKind, namespace, name string) [2]string {
	usual := Name(kind.Kind, namespace, name)
	return [2]string{usual, binding.UnambiguousName(usual, kind.Group, kind.Kind, namespace, name)}
}
