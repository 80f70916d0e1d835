package dependency

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Record notes on a dependent what it needs. A note that means the same stays as
// it is, in whatever order somebody else wrote it; no references remove it.
func Record(dependent metav1.Object, references []Reference) error {
	note, noted := dependent.GetAnnotations()[workv1alpha2.DependenciesAnnotation]
	if len(references) == 0 {
		setAnnotation(dependent, workv1alpha2.DependenciesAnnotation, "")
		return nil
	}
	if recorded, err := Decode(note); noted && err == nil && same(recorded, references) {
		return nil
	}
	text, err := Encode(references)
	if err != nil {
		return err
	}
	setAnnotation(dependent, workv1alpha2.DependenciesAnnotation, text)
	return nil
}

func same(recorded, references []Reference) bool {
	recorded = slices.SortedFunc(slices.Values(recorded), Compare)
	return slices.EqualFunc(recorded, references, func(a, b Reference) bool { return Compare(a, b) == 0 })
}

// Encode writes references as the value of DependenciesAnnotation.
func Encode(references []Reference) (string, error) {
	text, err := json.Marshal(references)
	if err != nil {
		return "", fmt.Errorf("encoding dependencies: %w", err)
	}
	return string(text), nil
}

// Decode reads the value of DependenciesAnnotation; the empty text is no
// reference.
func Decode(note string) ([]Reference, error) {
	if note == "" {
		return nil, nil
	}
	var references []Reference
	if err := json.Unmarshal([]byte(note), &references); err != nil {
		return nil, fmt.Errorf("reading annotation %s: %w", workv1alpha2.DependenciesAnnotation, err)
	}
	return references, nil
}

// setAnnotation sets an annotation, or removes it when the value is empty. Maps
// are replaced and not changed, for they may be shared.
func setAnnotation(object metav1.Object, key, value string) {
	object.SetAnnotations(with(object.GetAnnotations(), key, value))
}

func with(marks map[string]string, key, value string) map[string]string {
	kept := make(map[string]string, len(marks)+1)
	maps.Copy(kept, marks)
	delete(kept, key)
	if value != "" {
		kept[key] = value
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}
