package policy

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// PriorityClassValue returns the value of a PriorityClass.
func PriorityClassValue(class *unstructured.Unstructured) int32 {
	value, _, err := unstructured.NestedInt64(class.Object, "value")
	if err != nil {
		return 0 // the API server rejects such a class
	}
	return int32(value) // the API server bounds the value
}
