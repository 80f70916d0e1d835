package binding

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Template is the template of a binding as far as the binding knows it: enough to
// tell events about, which users look for there.
func Template(of Object) *unstructured.Unstructured {
	reference := of.BindingSpec().Resource
	template := &unstructured.Unstructured{}
	template.SetAPIVersion(reference.APIVersion)
	template.SetKind(reference.Kind)
	template.SetNamespace(reference.Namespace)
	template.SetName(reference.Name)
	template.SetUID(reference.UID)
	return template
}
