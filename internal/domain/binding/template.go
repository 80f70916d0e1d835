package binding

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// Find returns the binding of a template, or the name under which a missing binding is created. get
// returns the binding with a name in the namespace of the template, or nil. A binding keeps its
// name, even if the first of its Names becomes free. If bindings of other templates have both
// names, which requires that a user created one of them, Find returns one of these bindings.
func Find(kind schema.GroupKind, templateName string, get func(name string) (Object, error)) (bound Object, freeName string, err error) {
	var other Object
	for _, name := range Names(kind, templateName) {
		found, err := get(name)
		switch {
		case err != nil:
			return nil, "", err
		case found == nil:
			freeName = cmp.Or(freeName, name)
		case IsOf(found, kind, templateName):
			return found, "", nil
		default:
			other = found
		}
	}
	if freeName == "" {
		return other, "", nil
	}
	return nil, freeName, nil
}

// IsOf reports whether a binding belongs to the template of that kind and name in the namespace of
// the binding: the template is the controller of the binding or its spec.resource. It returns true
// for a binding that has neither.
func IsOf(bound Object, kind schema.GroupKind, templateName string) bool {
	owner, held := metav1.GetControllerOf(bound), bound.BindingSpec().Resource
	if owner == nil && held.Name == "" {
		return true
	}
	return owner != nil && owner.Name == templateName && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == kind ||
		held.Name == templateName && held.Namespace == bound.GetNamespace() &&
			schema.FromAPIVersionAndKind(held.APIVersion, held.Kind).GroupKind() == kind
}
