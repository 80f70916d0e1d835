package dependencies

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// finalize detaches all bindings from a dependent, and then removes the finalizer of the dependent.
// The finalizer stays as long as outdated copies of the dependent keep bindings attached.
func (r *reconciler) finalize(ctx context.Context, dependent *workv1alpha2.ResourceBinding) error {
	key := client.ObjectKeyFromObject(dependent)
	r.referenceIndex.put(key, nil)
	retained, err := r.detachAll(ctx, dependent)
	if err != nil {
		return err
	}
	finalized := dependent.DeepCopy()
	if !retained {
		controllerutil.RemoveFinalizer(finalized, workv1alpha2.BindingDependenciesDistributorFinalizer)
	}
	if err := dependency.RecordReferences(finalized, nil); err != nil {
		return err
	}
	_, err = patch.Object(ctx, r.karmada, dependent, finalized)
	return client.IgnoreNotFound(err)
}

// detachDeleted detaches the bindings of a dependent that was deleted without its finalizer. It
// reads from the API server whether the dependent is deleted, because the cache alone does not
// prove the deletion.
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
	_, err = r.detachAll(ctx, &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: dependent.Namespace,
		Name: dependent.Name}})
	return err
}

// detachAll detaches all bindings from a dependent, and reports whether outdated copies of the
// dependent keep any of them attached.
func (r *reconciler) detachAll(ctx context.Context, dependent *workv1alpha2.ResourceBinding) (retained bool, err error) {
	attached, err := r.attachedTo(ctx, client.ObjectKeyFromObject(dependent))
	if err != nil {
		return false, err
	}
	var failures []error
	for _, each := range attached {
		outcome, err := r.detach(ctx, dependent, each)
		if err != nil {
			failures = append(failures, err)
		}
		retained = retained || outcome.retained
	}
	return retained, errors.Join(failures...)
}

// detachment is the outcome of detach.
type detachment struct {
	// written reports whether the binding was changed or deleted.
	written bool
	// retained reports whether outdated copies of the dependent keep the binding attached.
	retained bool
}

// detach removes a dependent from an attached binding, except in clusters with an outdated copy of
// the dependent. It deletes the binding if no policy and no other dependent needs it. The API
// server rejects both writes if the binding has changed since it was read.
func (r *reconciler) detach(ctx context.Context, dependent *workv1alpha2.ResourceBinding, stored binding.Object) (detachment, error) {
	key := client.ObjectKeyFromObject(dependent)
	peers, err := r.otherDependents(ctx, stored, key)
	if err != nil {
		return detachment{}, err
	}
	desired := binding.Copy(stored)
	unneeded := dependency.Release(desired, dependent, peers, time.Now())
	switch {
	case unneeded && stored.GetDeletionTimestamp() == nil:
		return detachment{written: true}, r.deleteBinding(ctx, stored)
	case unneeded && !binding.HasSuspendedDependents(stored):
		return detachment{}, nil // the binding is being deleted, and no suspension delays this
	}
	remaining, retained := peers.Existing, dependency.HasDependent(desired, key)
	if retained {
		remaining = append(remaining, dependent)
	}
	written, err := patch.Object(ctx, r.karmada, stored, desired)
	if err == nil {
		r.recordConflictEvent(desired, remaining, written)
	}
	return detachment{written: written, retained: retained}, client.IgnoreNotFound(err)
}

// recordSuspension updates the suspension of a dependent on an attached binding that is being
// deleted, so that the deletion ends when the dispatching of the dependent is resumed.
func (r *reconciler) recordSuspension(ctx context.Context, dependent *workv1alpha2.ResourceBinding,
	stored binding.Object) (written bool, err error) {
	desired := binding.Copy(stored)
	dependency.RecordSuspension(desired, dependent)
	written, err = patch.Object(ctx, r.karmada, stored, desired)
	return written, client.IgnoreNotFound(err)
}

func (r *reconciler) deleteBinding(ctx context.Context, stored binding.Object) error {
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
