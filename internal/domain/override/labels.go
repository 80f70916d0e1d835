package override

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/jsonedit"
)

func overrideLabels(manifest *unstructured.Unstructured, entry policyv1alpha1.LabelAnnotationOverrider) (string, error) {
	return "", overrideLabelsOrAnnotations(manifest, "labels", entry)
}

func overrideAnnotations(manifest *unstructured.Unstructured, entry policyv1alpha1.LabelAnnotationOverrider) (string, error) {
	return "", overrideLabelsOrAnnotations(manifest, "annotations", entry)
}

// overrideLabelsOrAnnotations changes the labels or annotations of the manifest. field is "labels"
// or "annotations". The operator add sets every key. The operators replace and remove ignore absent
// keys, so that one policy can select manifests with and without the key.
func overrideLabelsOrAnnotations(manifest *unstructured.Unstructured, field string, entry policyv1alpha1.LabelAnnotationOverrider) error {
	path := jsonedit.Pointer{"metadata", field}
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
			return patchOperation{operator: entry.Operator, path: path}.unknownOperatorError()
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
