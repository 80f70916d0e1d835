package admission

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/reach"
)

// resourceOf returns what a binding of either scope and version refers to, nil for
// nothing.
func resourceOf(object runtime.Object) *workv1alpha2.ObjectReference {
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

// bound judges what a binding of a namespace refers to; the namespace of a
// ClusterResourceBinding is empty. A reference that is stored already is warned
// about: nothing is made of it, and the rest of the binding must stay writable. The scope
// of its kind is not asked for: components change bindings often, and asking may take time.
//
// The flags of the control plane that skip further kinds and namespaces are not
// known here. They hold when something is made of the binding.
func (r *report) bound(namespace string, to, stored *workv1alpha2.ObjectReference) {
	scope, path := reach.UnknownScope, specPath().Child("resource")
	unchanged := stored != nil && sameObject(*to, *stored)
	if !unchanged {
		scope = r.scopeOf(*to)
	}
	refusal := reach.Bound(namespace, *to, scope)
	if refusal == nil {
		kind := schema.FromAPIVersionAndKind(to.APIVersion, to.Kind)
		refusal = reach.Propagated{APIs: reach.DefaultSkippedAPIs()}.Refuses(kind, types.NamespacedName{Namespace: to.Namespace, Name: to.Name})
	}
	switch {
	case refusal == nil:
	case unchanged:
		r.warn(path, "nothing is made of this binding: %v", refusal)
	default:
		r.add(field.Forbidden(path, refusal.Error()))
	}
}

func sameObject(a, b workv1alpha2.ObjectReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
}

// scopeOf returns the scope of a kind if the kinds of the control plane are known.
func (r *report) scopeOf(to workv1alpha2.ObjectReference) reach.Scope {
	kind := schema.FromAPIVersionAndKind(to.APIVersion, to.Kind)
	if r.served == nil || to.Kind == "" {
		return reach.UnknownScope
	}
	served := r.served(kind)
	if served == nil {
		return reach.UnknownScope
	}
	switch found, ok := served.kinds[kind]; {
	case !ok:
		return reach.UnknownScope
	case found.namespaced:
		return reach.NamespaceScope
	}
	return reach.ClusterScope
}
