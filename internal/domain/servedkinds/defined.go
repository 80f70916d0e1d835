package servedkinds

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsBuiltInGroup reports whether the API group is built in. A group without a dot is built in, because
// the groups of CustomResourceDefinitions contain a dot.
func IsBuiltInGroup(group string) bool { return !strings.Contains(group, ".") }

// IsCRDOfGroup reports whether a CustomResourceDefinition with the given name defines a kind in the
// group. The names of CustomResourceDefinitions have the form <plural>.<group>.
func IsCRDOfGroup(group, name string) bool {
	_, definedGroup, _ := strings.Cut(name, ".")
	return definedGroup == group
}

// CRDDefinesKind reports whether a CustomResourceDefinition defines the kind. It returns true for a
// definition that cannot be parsed. Because the kind's name in a definition can change, CRDDefinesKind
// also compares the accepted name in the status.
func CRDDefinesKind(definition map[string]any, kind schema.GroupKind) bool {
	group, _, _ := unstructured.NestedString(definition, "spec", "group")
	requested, _, _ := unstructured.NestedString(definition, "spec", "names", "kind")
	accepted, _, _ := unstructured.NestedString(definition, "status", "acceptedNames", "kind")
	if group == "" || requested == "" {
		return true
	}
	return group == kind.Group && (requested == kind.Kind || accepted == kind.Kind)
}
