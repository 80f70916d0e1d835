package binding

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/loop"
)

// orphanGracePeriod is how long Works are kept after their binding was deleted without deleting
// them. A binding that is created again or restored within this time takes over the Works, so that
// the workloads in the members keep running.
const orphanGracePeriod = time.Minute

// orphanTracker records when the controller first found that a binding is deleted but has Works
// left. If the records are lost, the Works are kept a little longer.
type orphanTracker struct {
	now func() time.Time

	mu           sync.Mutex
	deletedSince map[types.NamespacedName]time.Time
}

func newOrphanTracker(now func() time.Time) *orphanTracker {
	return &orphanTracker{now: now, deletedSince: map[types.NamespacedName]time.Time{}}
}

// requeueAfter returns how much longer the Works of a deleted binding must be kept. A result that
// is not positive means that this time is over.
func (o *orphanTracker) requeueAfter(bindingKey types.NamespacedName) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	since, ok := o.deletedSince[bindingKey]
	if !ok {
		since = o.now()
		o.deletedSince[bindingKey] = since
	}
	return since.Add(orphanGracePeriod).Sub(o.now())
}

func (o *orphanTracker) delete(bindingKey types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.deletedSince, bindingKey)
}

// collectOrphans deletes the Works of a deleted binding. Normally there are none, because the
// finalizer of the binding waits until the Works are deleted. Works remain only if a client removes
// this finalizer.
//
// A cache without the binding does not prove that the binding does not exist. The API server must
// respond that no binding has this name, and that no binding has the ID in the labels of the Works.
func (r *reconciler) collectOrphans(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	works, err := r.worksByKey(ctx, key)
	works = withoutTerminating(works)
	if err != nil || len(works) == 0 {
		r.orphans.delete(key)
		return reconcile.Result{}, err
	}
	if wait := r.orphans.requeueAfter(key); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	err = r.karmadaReader.Get(ctx, key, binding.New(r.namespaced))
	if err == nil {
		// The binding exists. It is queued when the cache receives it.
		r.orphans.delete(key)
		return reconcile.Result{}, nil
	}
	if !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("confirming that binding %s does not exist: %w", key, err)
	}
	works, err = r.onlyUnowned(ctx, "", works)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.deleteWorks(ctx, works); err != nil {
		return reconcile.Result{}, fmt.Errorf("deleting the Works of deleted binding %s: %w", key, err)
	}
	r.orphans.delete(key)
	return reconcile.Result{}, nil
}

// worksByKey returns the Works whose annotations name a binding, regardless of the ID in their
// labels. The Works are shared with the cache and must not be changed.
func (r *reconciler) worksByKey(ctx context.Context, key types.NamespacedName) ([]*workv1alpha1.Work, error) {
	list := &workv1alpha1.WorkList{}
	if err := r.karmada.List(ctx, list, loop.WorksByBinding.Matching(key.String()), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Works of binding %s: %w", key, err)
	}
	works := make([]*workv1alpha1.Work, 0, len(list.Items))
	for i := range list.Items {
		works = append(works, &list.Items[i])
	}
	return works, nil
}

// onlyUnowned removes from the list the Works with the ID of a stored binding, unless that ID is
// ownID. It also removes Works without an ID, because it cannot prove that no binding owns them.
//
// The list request for bindings also proves that the API server serves the kind of the bindings: an
// API server that does not serve the kind responds with NotFound for every binding.
func (r *reconciler) onlyUnowned(ctx context.Context, ownID string, works []*workv1alpha1.Work) ([]*workv1alpha1.Work, error) {
	label := binding.PermanentIDLabel(binding.New(r.namespaced))
	inUse := map[string]bool{"": true, ownID: ownID == ""}
	var unowned []*workv1alpha1.Work
	for _, each := range works {
		id := each.Labels[label]
		owned, known := inUse[id]
		if !known {
			var err error
			if owned, err = r.isIDInUse(ctx, label, id); err != nil {
				return nil, err
			}
			inUse[id] = owned
		}
		if !owned {
			unowned = append(unowned, each)
		}
	}
	return unowned, nil
}

// isIDInUse reports whether a binding with the ID exists.
func (r *reconciler) isIDInUse(ctx context.Context, label, id string) (bool, error) {
	var list client.ObjectList = &workv1alpha2.ClusterResourceBindingList{}
	if r.namespaced {
		list = &workv1alpha2.ResourceBindingList{}
	}
	if err := r.karmadaReader.List(ctx, list, client.MatchingLabels{label: id}, client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing bindings with ID %s: %w", id, err)
	}
	return meta.LenList(list) > 0, nil
}
