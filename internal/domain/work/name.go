package work

import (
	"strings"

	"karmada.io/karmada/internal/domain/fnv"
	"karmada.io/karmada/internal/domain/objectname"
)

// Name returns the name of the Work for an object: the name of the object and a hash of its kind,
// namespace and name, all in lower case. The API group is not part of the hash.
func Name(kind, namespace, name string) string {
	identity := strings.ToLower(strings.ReplaceAll(name, ":", ".") + "-" + kind)
	if namespace != "" {
		identity = strings.ToLower(namespace) + "-" + identity
	}
	return objectname.WithSuffix(name, fnv.Encode(identity))
}
