package override

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/jsonedit"
)

// validateObject returns an error if the manifest lacks an apiVersion, a kind or a name, or if its labels,
// annotations or namespace have the wrong type. Karmada stores the ownership of objects in labels.
func validateObject(manifest *unstructured.Unstructured) error {
	for _, field := range []jsonedit.Pointer{{"apiVersion"}, {"kind"}, {"metadata", "name"}} {
		text, _, err := unstructured.NestedString(manifest.Object, field...)
		if err != nil || text == "" {
			return mismatchf(field.String(), "keep the field a string", "an object needs %s", field[len(field)-1])
		}
	}
	for _, field := range []jsonedit.Pointer{{"metadata", "labels"}, {"metadata", "annotations"}} {
		if _, _, err := unstructured.NestedStringMap(manifest.Object, field...); err != nil {
			return mismatchf(field.String(), "keep the field a map of strings", "%w", err)
		}
	}
	if _, _, err := unstructured.NestedString(manifest.Object, "metadata", "namespace"); err != nil {
		return mismatchf("/metadata/namespace", "keep the field a string", "%w", err)
	}
	return nil
}
