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
)

// template is the object of a dependent, at least as new as the dependent says;
// nil when there is none. It must not be changed.
func (r *reconciler) template(ctx context.Context, resource workv1alpha2.ObjectReference) (*unstructured.Unstructured, error) {
	kind := schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind)
	key := types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name}
	template, err := r.templates.Get(ctx, kind, key)
	if err != nil || template == nil {
		return nil, err
	}
	if template.GetUID() == resource.UID {
		order, err := resourceversion.CompareResourceVersion(template.GetResourceVersion(), resource.ResourceVersion)
		if err == nil && order < 0 {
			return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key, errStale)
		}
	}
	return template, nil
}

// objects are those that a reference points to and that exist. They must not be
// changed, and their kind need not be served.
func (r *reconciler) objects(ctx context.Context, reference dependency.Reference) ([]*unstructured.Unstructured, error) {
	kind := dependency.KindOf(reference)
	if reference.Name != "" {
		object, err := r.templates.Seen(ctx, kind, types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name})
		if err != nil || object == nil {
			return nil, err
		}
		return []*unstructured.Unstructured{object}, nil
	}
	selector := dependency.SelectorOf(reference)
	if selector == nil {
		return nil, nil
	}
	return r.templates.List(ctx, kind, reference.Namespace, selector)
}
