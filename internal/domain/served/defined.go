package served

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsBuiltIn reports whether no CustomResourceDefinition can define the kinds of a group:
// their groups have a dot.
func IsBuiltIn(group string) bool { return !strings.Contains(group, ".") }

// IsDefinitionOf reports whether the CustomResourceDefinition of a name, which is
// <plural>.<group>, defines a kind of a group.
func IsDefinitionOf(group, name string) bool {
	_, of, _ := strings.Cut(name, ".")
	return of == group
}

// Defines reports whether a CustomResourceDefinition defines a kind, or may: one that
// cannot be read counts. The name of a kind can be changed; the one that was accepted
// counts also.
func Defines(definition map[string]any, kind schema.GroupKind) bool {
	group, _, _ := unstructured.NestedString(definition, "spec", "group")
	wanted, _, _ := unstructured.NestedString(definition, "spec", "names", "kind")
	accepted, _, _ := unstructured.NestedString(definition, "status", "acceptedNames", "kind")
	if group == "" || wanted == "" {
		return true
	}
	return group == kind.Group && (wanted == kind.Kind || accepted == kind.Kind)
}
