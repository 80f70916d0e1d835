package override

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/jsonpointer"
)

// overrideCommandOrArgs changes the command or args of every container with the given name. field
// is "command" or "args". A manifest without that container is not changed.
func overrideCommandOrArgs(manifest *unstructured.Unstructured, field string, entry policyv1alpha1.CommandArgsOverrider) error {
	return forEachContainer(manifest, func(path jsonpointer.Pointer, container map[string]any) error {
		if container["name"] != entry.ContainerName {
			return nil
		}
		path = append(slices.Clone(path), field)
		words, _, err := unstructured.NestedStringSlice(container, field)
		if err != nil {
			return &mismatchError{path: path.String(), err: err}
		}
		switch entry.Operator {
		case policyv1alpha1.OverriderOpAdd:
			words = append(words, entry.Value...)
		case policyv1alpha1.OverriderOpRemove:
			words = slices.DeleteFunc(words, func(word string) bool { return slices.Contains(entry.Value, word) })
		default:
			return mismatchf(path.String(), "use add or remove", "operator %q does not apply to a %s", entry.Operator, field)
		}
		list := make([]any, len(words))
		for i, word := range words {
			list[i] = word
		}
		container[field] = list
		return nil
	})
}
