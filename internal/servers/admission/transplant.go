package admission

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"karmada.io/karmada/internal/access/patch"
)

// transplant applies the difference between two typed states to the content that
// the first was decoded from. Writing the second state out instead would add
// fields that nobody set, such as empty structs, and drop what the type does not
// know.
func transplant(content map[string]any, before, after runtime.Object) error {
	if patch.Same(before, after) {
		return nil
	}
	from, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return fmt.Errorf("encoding the object as it came: %w", err)
	}
	to, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if err != nil {
		return fmt.Errorf("encoding the completed object: %w", err)
	}
	transplantMap(content, from, to)
	return nil
}

func transplantMap(content, from, to map[string]any) {
	for key := range from {
		if _, kept := to[key]; !kept {
			delete(content, key)
		}
	}
	for key, value := range to {
		if previous, ok := from[key]; !ok || !reflect.DeepEqual(previous, value) {
			content[key] = transplantValue(content[key], from[key], value)
		}
	}
}

// transplantValue descends into maps, and into lists that keep their length;
// anything else is replaced.
func transplantValue(content, from, to any) any {
	switch to := to.(type) {
	case map[string]any:
		content, okContent := content.(map[string]any)
		from, okFrom := from.(map[string]any)
		if okContent && okFrom {
			transplantMap(content, from, to)
			return content
		}
	case []any:
		content, okContent := content.([]any)
		from, okFrom := from.([]any)
		if okContent && okFrom && len(content) == len(to) && len(from) == len(to) {
			for i := range to {
				if !reflect.DeepEqual(from[i], to[i]) {
					content[i] = transplantValue(content[i], from[i], to[i])
				}
			}
			return content
		}
	}
	return to
}
