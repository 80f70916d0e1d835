package binding

import (
	"strings"

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

// Finalizer is what holds a deleted binding until its Works are deleted too.
func Finalizer(obj Object) string {
	if Namespaced(obj) {
		return workv1alpha2.BindingControllerFinalizer
	}
	return workv1alpha2.ClusterResourceBindingControllerFinalizer
}
