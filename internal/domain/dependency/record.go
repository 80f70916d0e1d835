package dependency

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// RecordReferences stores the references in an annotation of the dependent. It does not change the
// annotation if the annotation contains the same references in another order. An empty list removes the
// annotation.
func RecordReferences(dependent metav1.Object, references []Reference) error {
	note, noted := dependent.GetAnnotations()[workv1alpha2.DependenciesAnnotation]
	if len(references) == 0 {
		setAnnotation(dependent, workv1alpha2.DependenciesAnnotation, "")
		return nil
	}
	if recorded, err := Decode(note); noted && err == nil && sameReferences(recorded, references) {
		return nil
	}
	text, err := Encode(references)
	if err != nil {
		return err
	}
	setAnnotation(dependent, workv1alpha2.DependenciesAnnotation, text)
	return nil
}

func sameReferences(recorded, references []Reference) bool {
	recorded = slices.SortedFunc(slices.Values(recorded), CompareReferences)
	return slices.EqualFunc(recorded, references, func(a, b Reference) bool { return CompareReferences(a, b) == 0 })
}

// Encode returns the references as the value of DependenciesAnnotation.
func Encode(references []Reference) (string, error) {
	text, err := json.Marshal(references)
	if err != nil {
		return "", fmt.Errorf("encoding dependencies: %w", err)
	}
	return string(text), nil
}

// Decode parses the value of DependenciesAnnotation. It returns no references for an empty string.
func Decode(text string) ([]Reference, error) {
	if text == "" {
		return nil, nil
	}
	var references []Reference
	if err := json.Unmarshal([]byte(text), &references); err != nil {
		return nil, fmt.Errorf("reading annotation %s: %w", workv1alpha2.DependenciesAnnotation, err)
	}
	return references, nil
}

// setAnnotation sets an annotation, or removes it if value is empty. It replaces the whole annotation
// map instead of changing it, because the old map may be shared.
func setAnnotation(object metav1.Object, key, value string) {
	object.SetAnnotations(withEntry(object.GetAnnotations(), key, value))
}

func withEntry(entries map[string]string, key, value string) map[string]string {
	kept := make(map[string]string, len(entries)+1)
	maps.Copy(kept, entries)
	delete(kept, key)
	if value != "" {
		kept[key] = value
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}
