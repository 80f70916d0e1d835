package binding

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/fnv"
)

// Name returns the name of the binding of a template: "nginx" and "Deployment" give
// "nginx-deployment". Colons become dots, because RBAC names may contain them and binding
// names may not. Two templates with the same name and kind but different API groups share a
// name; the API offers no way around it.
func Name(templateName, kind string) string {
	return strings.ToLower(strings.ReplaceAll(templateName, ":", ".") + "-" + kind)
}

// ReferenceKey returns a hash for a binding, for places where namespace and name do not fit,
// such as a label key. Without a namespace it is that of a ClusterResourceBinding.
func ReferenceKey(namespace, name string) string {
	if namespace == "" {
		return fnv.Encode(name)
	}
	return fnv.Encode(namespace + "/" + name)
}

// PermanentIDLabel returns the label key for the ID of a binding: on the binding itself, on
// its Works and on the member objects.
func PermanentIDLabel(obj Object) string {
	if IsNamespaced(obj) {
		return workv1alpha2.ResourceBindingPermanentIDLabel
	}
	return workv1alpha2.ClusterResourceBindingPermanentIDLabel
}

// PermanentID returns the ID that admission gave the binding, empty before that.
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

// ReferencedBinding returns the binding of one scope to which the Coordinates of a Work or a member object
// refer. ok is false if there is none.
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
// binding. The ID alone does not prove it, because a binding that was copied with its labels
// has the ID of another one. An object without Coordinates belongs to the binding.
func BelongsTo(object metav1.Object, bound Object) bool {
	key, ok := ReferencedBinding(object, IsNamespaced(bound))
	return !ok || key.Namespace == bound.GetNamespace() && key.Name == bound.GetName()
}

// Finalizer returns the finalizer that keeps a deleted binding until its Works are deleted
// too.
func Finalizer(obj Object) string {
	if IsNamespaced(obj) {
		return workv1alpha2.BindingControllerFinalizer
	}
	return workv1alpha2.ClusterResourceBindingControllerFinalizer
}
