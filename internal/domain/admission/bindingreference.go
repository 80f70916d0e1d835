package admission

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/tenancy"
)

// referencedResource returns the template reference of a binding of either scope and any version. It
// returns nil for other objects.
func referencedResource(object runtime.Object) *workv1alpha2.ObjectReference {
	switch o := object.(type) {
	case *workv1alpha2.ResourceBinding:
		return &o.Spec.Resource
	case *workv1alpha2.ClusterResourceBinding:
		return &o.Spec.Resource
	case *workv1alpha1.ResourceBinding:
		return &o.ToV1alpha2().Spec.Resource
	case *workv1alpha1.ClusterResourceBinding:
		return &o.ToV1alpha2().Spec.Resource
	}
	return nil
}

// validateBindingReference validates the binding's template reference. namespace is empty for a
// ClusterResourceBinding. An invalid reference that is already stored causes only a warning, because
// the reference has no effect and the rest of the binding must stay writable. The scope of a stored
// reference's kind is not looked up, because the lookup takes time and components update bindings
// often.
//
// The control plane's flags that exclude more kinds and namespaces are unknown here. They are applied
// when the binding's Works are created.
func (r *report) validateBindingReference(namespace string, reference, stored *workv1alpha2.ObjectReference) {
	scope, path := tenancy.UnknownScope, specPath().Child("resource")
	unchanged := stored != nil && isSameObject(*reference, *stored)
	if !unchanged {
		scope = r.lookUpScope(*reference)
	}
	problem := tenancy.CheckReference(namespace, *reference, scope)
	if problem == nil {
		kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)
		problem = tenancy.PropagationRules{APIs: tenancy.DefaultSkippedAPIs()}.Check(kind,
			types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name})
	}
	switch {
	case problem == nil:
	case unchanged:
		r.addWarning(path, "this binding has no effect: %v", problem)
	default:
		r.addErrors(field.Forbidden(path, problem.Error()))
	}
}

func isSameObject(a, b workv1alpha2.ObjectReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
}

// lookUpScope returns the scope of the referenced kind, or UnknownScope if the kind is not known.
func (r *report) lookUpScope(reference workv1alpha2.ObjectReference) tenancy.Scope {
	kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)
	if r.servedKinds == nil || reference.Kind == "" {
		return tenancy.UnknownScope
	}
	served := r.servedKinds(kind)
	if served == nil {
		return tenancy.UnknownScope
	}
	switch found, ok := served.kinds[kind]; {
	case !ok:
		return tenancy.UnknownScope
	case found.namespaced:
		return tenancy.NamespaceScope
	}
	return tenancy.ClusterScope
}
