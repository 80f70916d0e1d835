package dependencies

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
)

// withdraw releases everything that follows a dependent, and then the dependent
// itself.
func (r *reconciler) withdraw(ctx context.Context, dependent *workv1alpha2.ResourceBinding) error {
	key := client.ObjectKeyFromObject(dependent)
	r.needs.put(key, nil)
	if err := r.releaseAll(ctx, key); err != nil {
		return err
	}
	released := dependent.DeepCopy()
	controllerutil.RemoveFinalizer(released, workv1alpha2.BindingDependenciesDistributorFinalizer)
	if err := dependency.Record(released, nil); err != nil {
		return err
	}
	_, err := patch.Object(ctx, r.karmada, dependent, released)
	return client.IgnoreNotFound(err)
}

// abandon releases what follows a dependent that went without waiting for us. The
// cache alone does not prove that it did.
func (r *reconciler) abandon(ctx context.Context, dependent types.NamespacedName) error {
	r.needs.put(dependent, nil)
	attached, err := r.attachedTo(ctx, dependent)
	if err != nil || len(attached) == 0 {
		return err
	}
	peer, err := r.peer(ctx, dependent)
	if err != nil {
		return err
	}
	if peer != nil {
		return fmt.Errorf("binding %s: %w", dependent, errStale)
	}
	return r.releaseAll(ctx, dependent)
}

func (r *reconciler) releaseAll(ctx context.Context, dependent types.NamespacedName) error {
	attached, err := r.attachedTo(ctx, dependent)
	if err != nil {
		return err
	}
	var failures []error
	for _, each := range attached {
		if err := r.release(ctx, dependent, each); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// release takes a dependent off an attached binding, and deletes the binding when
// nothing else says where it should be. Either is refused if the binding has
// changed since it was looked at.
func (r *reconciler) release(ctx context.Context, dependent types.NamespacedName, stored binding.Object) error {
	peers, err := r.peers(ctx, stored, dependent)
	if err != nil {
		return err
	}
	desired := binding.Copy(stored)
	if dependency.Release(desired, dependent, peers) {
		return r.remove(ctx, stored)
	}
	written, err := patch.Object(ctx, r.karmada, stored, desired)
	if err == nil {
		r.quarrel(desired, peers.Present, written)
	}
	return client.IgnoreNotFound(err)
}

func (r *reconciler) remove(ctx context.Context, stored binding.Object) error {
	if stored.GetDeletionTimestamp() != nil {
		return nil
	}
	uid, version := stored.GetUID(), stored.GetResourceVersion()
	doomed := binding.New(binding.Namespaced(stored))
	doomed.SetNamespace(stored.GetNamespace())
	doomed.SetName(stored.GetName())
	err := r.karmada.Delete(ctx, doomed, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting binding %s: %w", client.ObjectKeyFromObject(stored), err)
	}
	return nil
}
