package dependencies

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/loop"
)

// readTemplate returns the template of a dependent, or nil if the template does not exist. The
// template is at least as new as the version in the binding. It must not be changed.
func (r *reconciler) readTemplate(ctx context.Context, resource workv1alpha2.ObjectReference) (*unstructured.Unstructured, error) {
	kind := schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind)
	key := types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name}
	template, err := r.templateReader.Get(ctx, kind, key)
	if err != nil || template == nil {
		return nil, err
	}
	if template.GetUID() == resource.UID {
		order, err := resourceversion.CompareResourceVersion(template.GetResourceVersion(), resource.ResourceVersion)
		if err == nil && order < 0 {
			return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key, loop.ErrStale)
		}
	}
	return template, nil
}

// referencedObjects returns the existing objects that a reference selects. The objects must not be
// changed. If the kind of the objects is not served, the result is empty.
func (r *reconciler) referencedObjects(ctx context.Context, reference dependency.Reference) ([]*unstructured.Unstructured, error) {
	kind := dependency.ReferencedKind(reference)
	if reference.Name != "" {
		object, err := r.templateReader.GetCached(ctx, kind, types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name})
		if err != nil || object == nil {
			return nil, err
		}
		return []*unstructured.Unstructured{object}, nil
	}
	selector := dependency.SelectorOf(reference)
	if selector == nil {
		return nil, nil
	}
	return r.templateReader.List(ctx, kind, reference.Namespace, selector)
}
