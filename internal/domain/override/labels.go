package override

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// overrideKeys changes the labels or annotations (field) of the manifest. Adding
// sets every key; replacing and removing leave absent keys alone, so that one
// policy serves manifests of which only some have the key.
func overrideKeys(manifest *unstructured.Unstructured, field string, entry policyv1alpha1.LabelAnnotationOverrider) error {
	path := pointer{"metadata", field}
	keys, found, err := unstructured.NestedMap(manifest.Object, path...)
	if err != nil {
		return &mismatchError{path: path.String(), err: err}
	}
	if !found {
		keys = map[string]any{}
	}
	for key, value := range entry.Value {
		_, present := keys[key]
		switch entry.Operator {
		case policyv1alpha1.OverriderOpAdd:
			keys[key] = value
		case policyv1alpha1.OverriderOpReplace:
			if present {
				keys[key] = value
			}
		case policyv1alpha1.OverriderOpRemove:
			delete(keys, key)
		default:
			return edit{operator: entry.Operator, path: path}.unknown()
		}
	}
	if !found && len(keys) == 0 {
		return nil
	}
	if err := unstructured.SetNestedMap(manifest.Object, keys, path...); err != nil {
		return &mismatchError{path: path.String(), err: err}
	}
	return nil
}
