package binding

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TemplateReference returns the reference to the template of a binding as an object without content. It
// is used for events, which users look for at the template.
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
