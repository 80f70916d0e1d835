package admission

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"karmada.io/karmada/internal/loop/patch"
)

// applyDiff applies the difference between before and after to content, the unstructured object
// from which before was decoded. Encoding after instead would add fields that were not set, such as
// empty structs, and would remove unknown fields.
func applyDiff(content map[string]any, before, after runtime.Object) error {
	if patch.Equal(before, after) {
		return nil
	}
	from, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return fmt.Errorf("encoding the original object: %w", err)
	}
	to, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if err != nil {
		return fmt.Errorf("encoding the defaulted object: %w", err)
	}
	applyMapDiff(content, from, to)
	return nil
}

func applyMapDiff(content, from, to map[string]any) {
	for key := range from {
		if _, kept := to[key]; !kept {
			delete(content, key)
		}
	}
	for key, value := range to {
		if previous, ok := from[key]; !ok || !reflect.DeepEqual(previous, value) {
			content[key] = applyValueDiff(content[key], from[key], value)
		}
	}
}

// applyValueDiff descends into maps, and into lists of equal length. It replaces all other values.
func applyValueDiff(content, from, to any) any {
	switch to := to.(type) {
	case map[string]any:
		content, okContent := content.(map[string]any)
		from, okFrom := from.(map[string]any)
		if okContent && okFrom {
			applyMapDiff(content, from, to)
			return content
		}
	case []any:
		content, okContent := content.([]any)
		from, okFrom := from.([]any)
		if okContent && okFrom && len(content) == len(to) && len(from) == len(to) {
			for i := range to {
				if !reflect.DeepEqual(from[i], to[i]) {
					content[i] = applyValueDiff(content[i], from[i], to[i])
				}
			}
			return content
		}
	}
	return to
}
