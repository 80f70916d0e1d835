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
)

// abandonedAfter is how long Works outlive a binding that went without deleting
// them. A binding that is made anew, or restored, takes them over meanwhile, and
// what runs in the members goes on.
const abandonedAfter = time.Minute

// abandoned remembers since when bindings that left Works behind have been gone. It
// may be lost: then they stay a little longer.
type abandoned struct {
	now func() time.Time

	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

func newAbandoned(now func() time.Time) *abandoned {
	return &abandoned{now: now, since: map[types.NamespacedName]time.Time{}}
}

// wait is how long the Works of a binding that is gone are still to be left alone.
func (a *abandoned) wait(of types.NamespacedName) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, ok := a.since[of]
	if !ok {
		since = a.now()
		a.since[of] = since
	}
	return since.Add(abandonedAfter).Sub(a.now())
}

func (a *abandoned) forget(of types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.since, of)
}

// collect deletes the Works of a binding that is gone. As a rule there are none: a
// binding waits until they are deleted, unless somebody takes its finalizer away.
//
// A cache that does not have the binding proves nothing. The API server has to say
// that there is none of that name, and none that has the id which the Works bear.
func (r *reconciler) collect(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	works, err := r.claiming(ctx, key)
	works = lasting(works)
	if err != nil || len(works) == 0 {
		r.abandoned.forget(key)
		return reconcile.Result{}, err
	}
	if wait := r.abandoned.wait(key); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	err = r.live.Get(ctx, key, binding.New(r.namespaced))
	if err == nil {
		// The cache will show it, and its own pass follows.
		r.abandoned.forget(key)
		return reconcile.Result{}, nil
	}
	if !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("confirming that binding %s is gone: %w", key, err)
	}
	works, err = r.unclaimed(ctx, "", works)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.remove(ctx, works); err != nil {
		return reconcile.Result{}, fmt.Errorf("collecting what binding %s left: %w", key, err)
	}
	r.abandoned.forget(key)
	return reconcile.Result{}, nil
}

// claiming are the Works that say to be of a binding of that name, whatever id
// they bear. They are shared with the cache and must not be changed.
func (r *reconciler) claiming(ctx context.Context, key types.NamespacedName) ([]*workv1alpha1.Work, error) {
	list := &workv1alpha1.WorkList{}
	if err := r.karmada.List(ctx, list, client.MatchingFields{bindingKeyField: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Works of binding %s: %w", key, err)
	}
	works := make([]*workv1alpha1.Work, 0, len(list.Items))
	for i := range list.Items {
		works = append(works, &list.Items[i])
	}
	return works, nil
}

// unclaimed leaves out Works with the id of any binding that is stored, other than
// the given id, and those with no id at all, of which nothing can be proven.
//
// Asking for a list also proves that bindings are served at all: a server without
// that kind finds no binding of any name.
func (r *reconciler) unclaimed(ctx context.Context, own string, works []*workv1alpha1.Work) ([]*workv1alpha1.Work, error) {
	label := binding.PermanentIDLabel(binding.New(r.namespaced))
	claimed := map[string]bool{"": true, own: own == ""}
	var free []*workv1alpha1.Work
	for _, each := range works {
		id := each.Labels[label]
		taken, known := claimed[id]
		if !known {
			var err error
			if taken, err = r.claims(ctx, label, id); err != nil {
				return nil, err
			}
			claimed[id] = taken
		}
		if !taken {
			free = append(free, each)
		}
	}
	return free, nil
}

// claims tells whether there is a binding with the id.
func (r *reconciler) claims(ctx context.Context, label, id string) (bool, error) {
	var list client.ObjectList = &workv1alpha2.ClusterResourceBindingList{}
	if r.namespaced {
		list = &workv1alpha2.ResourceBindingList{}
	}
	if err := r.live.List(ctx, list, client.MatchingLabels{label: id}, client.Limit(1)); err != nil {
		return false, fmt.Errorf("asking who has the id %s: %w", id, err)
	}
	return meta.LenList(list) > 0, nil
}
