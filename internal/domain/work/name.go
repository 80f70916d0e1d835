package work

import (
	"strings"

	"karmada.io/karmada/internal/domain/fnv"
)

// Name is the name of the Work that carries an object: the object's name and a
// hash of its kind, namespace and name, all in lower case. The API group is not
// part of it, and nothing is cut off: an object whose name is nearly as long as
// names may be has no valid Work name, which the API server then says.
func Name(kind, namespace, name string) string {
	name = strings.ToLower(strings.ReplaceAll(name, ":", "."))
	identity := name + "-" + strings.ToLower(kind)
	if namespace != "" {
		identity = strings.ToLower(namespace) + "-" + identity
	}
	return name + "-" + fnv.Encode(identity)
}
