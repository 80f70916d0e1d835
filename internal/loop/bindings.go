package loop

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// GetActiveBinding returns the binding with the given key, or nil if the binding does not exist or is
// being deleted.
func GetActiveBinding(ctx context.Context, from client.Reader, namespaced bool, key types.NamespacedName) (binding.Object, error) {
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

// FindTemplateBinding returns the binding of a template, or the name under which a missing binding is
// created. Like binding.Find, it may return the binding of another template.
func FindTemplateBinding(ctx context.Context, from client.Reader, kind schema.GroupKind,
	template types.NamespacedName) (bound binding.Object, freeName string, err error) {
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

// ListBindings returns the bindings of one scope that match the options.
func ListBindings(ctx context.Context, from client.Reader, namespaced bool, options ...client.ListOption) ([]binding.Object, error) {
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

// ListBindingsInCluster returns the bindings of one scope that are scheduled to a cluster or evicted
// from that cluster.
func ListBindingsInCluster(ctx context.Context, from client.Reader, namespaced bool, cluster string) ([]binding.Object, error) {
	found, err := ListBindings(ctx, from, namespaced, BindingsByCluster.Matching(cluster))
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cluster, err)
	}
	return found, nil
}

// ListWorksOfBinding returns the Works of a binding. It skips Works whose annotations name another binding,
// because a copy of a binding has the same ID. It needs the index WorksByBindingID.
func ListWorksOfBinding(ctx context.Context, from client.Reader, bound binding.Object) ([]*workv1alpha1.Work, error) {
	list := &workv1alpha1.WorkList{}
	id := bindingIDKey(binding.PermanentIDLabel(bound), binding.PermanentID(bound))
	if err := from.List(ctx, list, WorksByBindingID.Matching(id), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Works of binding %s: %w", client.ObjectKeyFromObject(bound), err)
	}
	found := make([]*workv1alpha1.Work, 0, len(list.Items))
	for i := range list.Items {
		if binding.BelongsTo(&list.Items[i], bound) {
			found = append(found, &list.Items[i])
		}
	}
	return found, nil
}

// OnlyMatchingBindings returns a predicate that selects a binding if its state before or after the event
// matches. A controller thus also receives the event after which a binding no longer matches, and
// can drop its state for that binding.
func OnlyMatchingBindings(holds func(binding.Object) bool) predicate.Predicate {
	of := func(object client.Object) bool {
		bound, ok := object.(binding.Object)
		return ok && holds(bound)
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return of(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return of(e.ObjectOld) || of(e.ObjectNew) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return of(e.Object) },
		GenericFunc: func(e event.GenericEvent) bool { return of(e.Object) },
	}
}
