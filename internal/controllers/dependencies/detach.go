package dependencies

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// finalize detaches all bindings from a dependent, and then removes the finalizer of the
// dependent.
func (r *reconciler) finalize(ctx context.Context, dependent *workv1alpha2.ResourceBinding) error {
	key := client.ObjectKeyFromObject(dependent)
	r.referenceIndex.put(key, nil)
	if err := r.detachAll(ctx, key); err != nil {
		return err
	}
	finalized := dependent.DeepCopy()
	controllerutil.RemoveFinalizer(finalized, workv1alpha2.BindingDependenciesDistributorFinalizer)
	if err := dependency.RecordReferences(finalized, nil); err != nil {
		return err
	}
	_, err := patch.Object(ctx, r.karmada, dependent, finalized)
	return client.IgnoreNotFound(err)
}

// detachDeleted detaches the bindings of a dependent that was deleted without its finalizer. It
// asks the API server whether the dependent is deleted, because the cache alone does not prove the
// deletion.
func (r *reconciler) detachDeleted(ctx context.Context, dependent types.NamespacedName) error {
	r.referenceIndex.put(dependent, nil)
	attached, err := r.attachedTo(ctx, dependent)
	if err != nil || len(attached) == 0 {
		return err
	}
	peer, err := r.findDependent(ctx, dependent)
	if err != nil {
		return err
	}
	if peer != nil {
		return fmt.Errorf("binding %s: %w", dependent, loop.ErrStale)
	}
	return r.detachAll(ctx, dependent)
}

func (r *reconciler) detachAll(ctx context.Context, dependent types.NamespacedName) error {
	attached, err := r.attachedTo(ctx, dependent)
	if err != nil {
		return err
	}
	var failures []error
	for _, each := range attached {
		if err := r.detach(ctx, dependent, each); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// detach removes a dependent from an attached binding. It deletes the binding if no policy and no
// other dependent needs it. The API server rejects both writes if the binding has changed since it
// was read.
func (r *reconciler) detach(ctx context.Context, dependent types.NamespacedName, stored binding.Object) error {
	peers, err := r.otherDependents(ctx, stored, dependent)
	if err != nil {
		return err
	}
	desired := binding.Copy(stored)
	if dependency.Release(desired, dependent, peers, time.Now()) {
		return r.deleteBinding(ctx, stored)
	}
	written, err := patch.Object(ctx, r.karmada, stored, desired)
	if err == nil {
		r.recordConflictEvent(desired, peers.Existing, written)
	}
	return client.IgnoreNotFound(err)
}

func (r *reconciler) deleteBinding(ctx context.Context, stored binding.Object) error {
	if stored.GetDeletionTimestamp() != nil {
		return nil
	}
	uid, version := stored.GetUID(), stored.GetResourceVersion()
	deleted := binding.New(binding.IsNamespaced(stored))
	deleted.SetNamespace(stored.GetNamespace())
	deleted.SetName(stored.GetName())
	err := r.karmada.Delete(ctx, deleted, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting binding %s: %w", client.ObjectKeyFromObject(stored), err)
	}
	return nil
}
