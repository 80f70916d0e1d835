package override

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sound tells what a manifest lacks to be an object at all. A rule may rename an
// object, but not leave it without a name, or without a place for the labels that
// tell whose it is.
func sound(manifest *unstructured.Unstructured) error {
	for _, field := range []pointer{{"apiVersion"}, {"kind"}, {"metadata", "name"}} {
		text, _, err := unstructured.NestedString(manifest.Object, field...)
		if err != nil || text == "" {
			return mismatchf(field.String(), "let the rule leave the field a text", "an object needs %s", field[len(field)-1])
		}
	}
	for _, field := range []pointer{{"metadata", "labels"}, {"metadata", "annotations"}} {
		if _, _, err := unstructured.NestedStringMap(manifest.Object, field...); err != nil {
			return mismatchf(field.String(), "let the rule leave the field a map of texts", "%w", err)
		}
	}
	if _, _, err := unstructured.NestedString(manifest.Object, "metadata", "namespace"); err != nil {
		return mismatchf("/metadata/namespace", "let the rule leave the field a text", "%w", err)
	}
	return nil
}
