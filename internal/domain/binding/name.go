package binding

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Name returns the usual name of a template's binding: "nginx" and "Deployment" give
// "nginx-deployment", and "system:foo" and "ClusterRole" give "system.foo-clusterrole". The API
// defines the name without the group. Therefore two templates can have the same name here: those
// whose kinds differ only in the group, and those whose names differ only in capital letters or in
// colons and dots.
func Name(templateName, kind string) string { return NameWithSuffix(templateName, kind) }

// Names returns the names that the binding of a template can have. The first is Name. The second
// contains a hash of the exact group, kind and name, for a template whose Name is taken by the
// binding of another template.
func Names(kind schema.GroupKind, templateName string) [2]string {
	name := Name(templateName, kind.Kind)
	return [2]string{name, UnambiguousName(name, kind.Group, kind.Kind, templateName)}
}

// ReferenceKey returns a hash of a binding, for places where namespace and name do not fit, such as
// a label key. Without a namespace the hash is that of a ClusterResourceBinding.
func ReferenceKey(namespace, name string) string {
	if namespace == "" {
		return ShortHash(name)
	}
	return ShortHash(namespace + "/" + name)
}

// PermanentIDLabel returns the label key for the ID of a binding. The binding itself, its Works and
// the member objects have this label.
func PermanentIDLabel(obj Object) string {
	if IsNamespaced(obj) {
		return workv1alpha2.ResourceBindingPermanentIDLabel
	}
	return workv1alpha2.ClusterResourceBindingPermanentIDLabel
}

// PermanentID returns the ID that admission set on the binding. It returns an empty string if no ID
// is set yet.
func PermanentID(obj Object) string {
	return obj.GetLabels()[PermanentIDLabel(obj)]
}

// ReferenceAnnotations returns the annotations by which a Work or a member object refers to its
// binding.
func ReferenceAnnotations(obj Object) map[string]string {
	if !IsNamespaced(obj) {
		return map[string]string{workv1alpha2.ClusterResourceBindingAnnotation: obj.GetName()}
	}
	return map[string]string{
		workv1alpha2.ResourceBindingNamespaceAnnotation: obj.GetNamespace(),
		workv1alpha2.ResourceBindingNameAnnotation:      obj.GetName(),
	}
}

// ReferencedBinding returns the binding to which the annotations of a Work or a member object
// refer. namespaced selects the scope of the binding. ok is false if the object refers to no
// binding of that scope.
func ReferencedBinding(from metav1.Object, namespaced bool) (key types.NamespacedName, ok bool) {
	annotations := from.GetAnnotations()
	if !namespaced {
		name := annotations[workv1alpha2.ClusterResourceBindingAnnotation]
		return types.NamespacedName{Name: name}, name != ""
	}
	key = types.NamespacedName{
		Namespace: annotations[workv1alpha2.ResourceBindingNamespaceAnnotation],
		Name:      annotations[workv1alpha2.ResourceBindingNameAnnotation],
	}
	return key, key.Namespace != "" && key.Name != ""
}

// BelongsTo reports whether a Work or a member object that has the ID of a binding belongs to that
// binding. The ID alone does not prove it, because a binding that was copied with its labels has
// the ID of another binding. An object without annotations that refer to a binding belongs to the
// binding.
func BelongsTo(object metav1.Object, bound Object) bool {
	key, ok := ReferencedBinding(object, IsNamespaced(bound))
	return !ok || key.Namespace == bound.GetNamespace() && key.Name == bound.GetName()
}

// Finalizer returns the finalizer that keeps a deleted binding until the Works of the binding are
// deleted.
func Finalizer(obj Object) string {
	if IsNamespaced(obj) {
		return workv1alpha2.BindingControllerFinalizer
	}
	return workv1alpha2.ClusterResourceBindingControllerFinalizer
}
