package override

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// overridePlaintext applies an entry of a plaintext overrider. Applying the entries one by one is
// equivalent to applying them as a single patch, because the manifest is discarded after an error.
func overridePlaintext(manifest *unstructured.Unstructured, entry policyv1alpha1.PlaintextOverrider) (string, error) {
	path, err := jsonedit.ParsePointer(entry.Path)
	if err != nil {
		return "", err
	}
	value, err := decodeValue(entry.Value.Raw)
	if err != nil {
		return "", &mismatchError{path: entry.Path, remedy: "give the value as JSON or YAML", err: err}
	}
	changed, err := patchOperation{operator: entry.Operator, path: path, value: value}.apply(manifest.Object)
	if err != nil {
		return "", err
	}
	object, ok := changed.(map[string]any)
	if !ok {
		return "", mismatchf(entry.Path, "name a field of the manifest", "a manifest cannot be %s", jsonedit.TypeName(changed))
	}
	manifest.Object = object
	return "", nil
}

// decodeValue decodes a JSON value like an object's field, with integers as int64. An empty value is
// null.
func decodeValue(raw []byte) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var value any
	if err := utiljson.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("decoding the value: %w", err)
	}
	return value, nil
}
