package binding

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TemplateReference returns an object that refers to the template of a binding and has no content.
// Events are recorded on this object, because users look for events at the template.
func TemplateReference(of Object) *unstructured.Unstructured {
	reference := of.BindingSpec().Resource
	template := &unstructured.Unstructured{}
	template.SetAPIVersion(reference.APIVersion)
	template.SetKind(reference.Kind)
	template.SetNamespace(reference.Namespace)
	template.SetName(reference.Name)
	template.SetUID(reference.UID)
	return template
}
