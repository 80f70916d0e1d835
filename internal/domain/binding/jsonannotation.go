package binding

import (
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetAnnotation sets an annotation. The annotation map is copied, because it may be shared with a cached
// object.
func SetAnnotation(object metav1.Object, name, value string) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	object.SetAnnotations(annotations)
}

// SetJSONAnnotation sets the annotation to the JSON encoding of value, or removes it if isEmpty is
// true. The annotation map is copied, because it may be shared with a cached object. value must be
// a type that can always be encoded, such as a list or a map of strings.
func SetJSONAnnotation(object metav1.Object, name string, value any, isEmpty bool) {
	if !isEmpty {
		text, _ := json.Marshal(value) // see above
		SetAnnotation(object, name, string(text))
		return
	}
	annotations := maps.Clone(object.GetAnnotations())
	delete(annotations, name)
	object.SetAnnotations(annotations)
}
