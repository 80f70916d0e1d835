package override

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/jsonedit"
)

func overrideCommand(manifest *unstructured.Unstructured, entry policyv1alpha1.CommandArgsOverrider) (string, error) {
	return overrideCommandOrArgs(manifest, "command", entry)
}

func overrideArgs(manifest *unstructured.Unstructured, entry policyv1alpha1.CommandArgsOverrider) (string, error) {
	return overrideCommandOrArgs(manifest, "args", entry)
}

// overrideCommandOrArgs changes the field "command" or "args" of the entry's container. A workload
// without this container is not an error, because a policy may select many workloads. In this case, the
// returned message names the workload's containers.
func overrideCommandOrArgs(manifest *unstructured.Unstructured, field string, entry policyv1alpha1.CommandArgsOverrider) (string, error) {
	var names []string
	err := forEachContainer(manifest, func(path jsonedit.Pointer, container map[string]any) error {
		if name, ok := container["name"].(string); ok {
			names = append(names, strconv.Quote(name))
		}
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
	if err != nil || slices.Contains(names, strconv.Quote(entry.ContainerName)) {
		return "", err
	}
	if containersPath(manifest.GetKind()) == nil {
		return unsupportedKind(manifest), nil
	}
	slices.Sort(names)
	return fmt.Sprintf("%s %s has no container %q; it has %s", manifest.GetKind(), namespacedName(manifest),
		entry.ContainerName, cmp.Or(strings.Join(names, ", "), "none")), nil
}
