package dependencies

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/dependency"
)

// informers are the watches that all controllers of a process share.
type informers interface {
	GetInformer(ctx context.Context, of client.Object, options ...cache.InformerGetOption) (cache.Informer, error)
}

// template is the object of a dependent, at least as new as the dependent says;
// nil when there is none. It must not be changed.
func (r *reconciler) template(ctx context.Context, resource workv1alpha2.ObjectReference) (*unstructured.Unstructured, error) {
	kind := schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind)
	key := types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name}
	var template *unstructured.Unstructured
	informer, err := r.informers.GetInformer(ctx, blank(kind), cache.BlockUntilSynced(false))
	if err == nil && informer.HasSynced() {
		if template, err = get(ctx, r.karmada, kind, key); err != nil {
			return nil, err
		}
	}
	if template == nil {
		template, err = get(ctx, r.live, kind, key)
	}
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
// changed.
func (r *reconciler) objects(ctx context.Context, reference dependency.Reference) ([]*unstructured.Unstructured, error) {
	kind := dependency.KindOf(reference)
	if reference.Name != "" {
		object, err := r.object(ctx, kind, types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name})
		if err != nil || object == nil {
			return nil, err
		}
		return []*unstructured.Unstructured{object}, nil
	}
	selector := dependency.SelectorOf(reference)
	if selector == nil {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := r.reader(kind).List(ctx, list, client.InNamespace(reference.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s %q: %w", kind.Kind, selector, err)
	}
	var found []*unstructured.Unstructured
	for i := range list.Items {
		object := &list.Items[i]
		// A list without a namespace is one of all namespaces.
		if object.GetNamespace() == reference.Namespace {
			found = append(found, object)
		}
	}
	return found, nil
}

// object is one dependency, nil when there is none. Its kind need not be served.
func (r *reconciler) object(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	return get(ctx, r.reader(kind), kind, key)
}

// reader reads dependencies of a kind without ever waiting for a watch. One that
// is not complete is of no use: the server is asked instead.
func (r *reconciler) reader(kind schema.GroupVersionKind) client.Reader {
	if r.watches.complete(kind) {
		return r.karmada
	}
	return r.live
}

func get(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	object := blank(kind)
	err := reader.Get(ctx, key, object, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
	}
	if object.GetNamespace() != key.Namespace {
		// The kind has no namespaces: that is not what was meant.
		return nil, nil
	}
	return object, nil
}

func blank(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}
