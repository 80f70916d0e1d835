package memberhpa

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

const (
	markLabel = workv1alpha2.RetainReplicasLabel
	ownerKey  = workv1alpha2.RetainReplicasSetByAnnotation
)

// SetMark adds the retain-replicas label to a template that a claimed HPA scales, and removes the label
// from any other template. It reports whether it changed the template.
//
// An annotation records that this function added the label. A label without the annotation, or with
// another value, belongs to a user and is never changed.
func SetMark(template metav1.Object, isScaled bool) (changed bool) {
	value, hasLabel := template.GetLabels()[markLabel]
	isOwn, isUsers := HasOwnMark(template), hasLabel && value != workv1alpha2.RetainReplicasValue
	switch {
	case isScaled && !hasLabel:
		template.SetLabels(with(template.GetLabels(), markLabel, workv1alpha2.RetainReplicasValue))
		template.SetAnnotations(with(template.GetAnnotations(), ownerKey, workv1alpha2.RetainReplicasSetByMarker))
		return true
	case !isOwn || isScaled && !isUsers:
		return false
	}
	if !isUsers {
		template.SetLabels(without(template.GetLabels(), markLabel))
	}
	template.SetAnnotations(without(template.GetAnnotations(), ownerKey))
	return true
}

// HasOwnMark reports whether SetMark added the label to the template.
func HasOwnMark(template metav1.Object) bool {
	return template.GetAnnotations()[ownerKey] == workv1alpha2.RetainReplicasSetByMarker
}

// HasMark reports whether the copies of the template keep their replicas.
func HasMark(template metav1.Object) bool {
	return template.GetLabels()[markLabel] == workv1alpha2.RetainReplicasValue
}

// HasSameMark reports whether two states of a template have the same label and owner.
func HasSameMark(a, b metav1.Object) bool {
	return a.GetLabels()[markLabel] == b.GetLabels()[markLabel] && a.GetAnnotations()[ownerKey] == b.GetAnnotations()[ownerKey]
}

func with(values map[string]string, key, value string) map[string]string {
	result := maps.Clone(values)
	if result == nil {
		result = map[string]string{}
	}
	result[key] = value
	return result
}

func without(values map[string]string, key string) map[string]string {
	result := maps.Clone(values)
	delete(result, key)
	return result
}
