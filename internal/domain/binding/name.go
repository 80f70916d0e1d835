package binding

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/fnv"
)

// Name is the name of the binding of a template: "nginx" and "Deployment" give
// "nginx-deployment". Colons, which RBAC names may hold and binding names may
// not, become dots. Two templates of the same name and kind but different API
// groups share a name; the API offers no way around it.
func Name(templateName, kind string) string {
	return strings.ToLower(strings.ReplaceAll(templateName, ":", ".") + "-" + kind)
}

// ReferenceKey stands for a binding where its coordinates do not fit, such as in
// a label key. Without a namespace it stands for a ClusterResourceBinding.
func ReferenceKey(namespace, name string) string {
	if namespace == "" {
		return fnv.Encode(name)
	}
	return fnv.Encode(namespace + "/" + name)
}

// PermanentIDLabel is the label key that carries the id of a binding: on the
// binding itself, on its Works and on the objects in the members.
func PermanentIDLabel(obj Object) string {
	if Namespaced(obj) {
		return workv1alpha2.ResourceBindingPermanentIDLabel
	}
	return workv1alpha2.ClusterResourceBindingPermanentIDLabel
}

// PermanentID is the id that admission gave the binding, empty before that.
func PermanentID(obj Object) string {
	return obj.GetLabels()[PermanentIDLabel(obj)]
}

// Coordinates are the annotations by which a Work or a member object leads back
// to its binding.
func Coordinates(obj Object) map[string]string {
	if !Namespaced(obj) {
		return map[string]string{workv1alpha2.ClusterResourceBindingAnnotation: obj.GetName()}
	}
	return map[string]string{
		workv1alpha2.ResourceBindingNamespaceAnnotation: obj.GetNamespace(),
		workv1alpha2.ResourceBindingNameAnnotation:      obj.GetName(),
	}
}

// LedTo is the binding of one scope that the Coordinates on a Work or a member
// object lead back to; ok is false when they lead to none.
func LedTo(from metav1.Object, namespaced bool) (key types.NamespacedName, ok bool) {
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

// IsOf reports whether a Work or a member object with the id of a binding is of that
// binding. The id alone does not prove it: a binding that was copied with its labels has
// the id of another one. An object without Coordinates is of the binding.
func IsOf(object metav1.Object, bound Object) bool {
	key, ok := LedTo(object, Namespaced(bound))
	return !ok || key.Namespace == bound.GetNamespace() && key.Name == bound.GetName()
}

// Finalizer is what holds a deleted binding until its Works are deleted too.
func Finalizer(obj Object) string {
	if Namespaced(obj) {
		return workv1alpha2.BindingControllerFinalizer
	}
	return workv1alpha2.ClusterResourceBindingControllerFinalizer
}
