package work

import (
	"strings"

	"karmada.io/karmada/internal/domain/fnv"
)

// Name returns the name of the Work for an object: the name of the object and a hash of its
// kind, namespace and name, all in lower case. The API group is not part of the hash. Nothing
// is cut off: if the name of the object is almost as long as the limit, the Work name is
// invalid and the API server rejects it.
func Name(kind, namespace, name string) string {
	name = strings.ToLower(strings.ReplaceAll(name, ":", "."))
	identity := name + "-" + strings.ToLower(kind)
	if namespace != "" {
		identity = strings.ToLower(namespace) + "-" + identity
	}
	return name + "-" + fnv.Encode(identity)
}
