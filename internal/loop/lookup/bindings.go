package lookup

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// ActiveBinding returns the binding with the given key, or nil if the binding does not exist or is
// being deleted.
func ActiveBinding(ctx context.Context, from client.Reader, namespaced bool, key types.NamespacedName) (binding.Object, error) {
	found := binding.New(namespaced)
	err := from.Get(ctx, key, found, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading binding %s: %w", key, err)
	}
	if found.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	return found, nil
}

// BindingOfTemplate returns the binding of a template, or the name under which a missing binding is
// created. Like binding.Find, it may return the binding of another template.
func BindingOfTemplate(ctx context.Context, from client.Reader, kind schema.GroupKind, template types.NamespacedName) (bound binding.Object, freeName string, err error) {
	return binding.Find(kind, template.Name, func(name string) (binding.Object, error) {
		found := binding.New(template.Namespace != "")
		key := types.NamespacedName{Namespace: template.Namespace, Name: name}
		err := from.Get(ctx, key, found, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading binding %s: %w", key, err)
		}
		return found, nil
	})
}

// Bindings returns the bindings of one scope that match the options.
func Bindings(ctx context.Context, from client.Reader, namespaced bool, options ...client.ListOption) ([]binding.Object, error) {
	var list client.ObjectList = &workv1alpha2.ClusterResourceBindingList{}
	if namespaced {
		list = &workv1alpha2.ResourceBindingList{}
	}
	if err := from.List(ctx, list, append([]client.ListOption{client.UnsafeDisableDeepCopy}, options...)...); err != nil {
		return nil, fmt.Errorf("listing bindings: %w", err)
	}
	found := make([]binding.Object, 0, meta.LenList(list))
	err := meta.EachListItem(list, func(item runtime.Object) error {
		bound, ok := item.(binding.Object)
		if !ok {
			return fmt.Errorf("a list of bindings has a %T", item)
		}
		found = append(found, bound)
		return nil
	})
	return found, err
}

// BindingsInCluster returns the bindings of one scope that are scheduled to a cluster or evicted
// from that cluster.
func BindingsInCluster(ctx context.Context, from client.Reader, namespaced bool, cluster string) ([]binding.Object, error) {
	found, err := Bindings(ctx, from, namespaced, BindingsByCluster.Matching(cluster))
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cluster, err)
	}
	return found, nil
}
