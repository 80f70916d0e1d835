package work

import (
	"strings"

	"karmada.io/karmada/internal/domain/fnv"
)

// Name returns the name of the Work for an object: the name of the object and a hash of its kind,
// namespace and name, all in lower case. The API group is not part of the hash. The name is not
// truncated: if the name of the object is almost as long as the limit, the name of the Work is
// invalid and the API server rejects the Work.
func Name(kind, namespace, name string) string {
	name = strings.ToLower(strings.ReplaceAll(name, ":", "."))
	identity := name + "-" + strings.ToLower(kind)
	if namespace != "" {
		identity = strings.ToLower(namespace) + "-" + identity
	}
	return name + "-" + fnv.Encode(identity)
}
