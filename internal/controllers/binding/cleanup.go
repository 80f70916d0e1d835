package binding

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/work"
)

// worksOf returns the Works of a binding, including terminating ones: those with its ID, and
// those of an earlier binding of the same name. They are shared with the cache and must not be
// changed.
func (r *reconciler) worksOf(ctx context.Context, bound binding.Object) ([]*workv1alpha1.Work, error) {
	id := binding.PermanentID(bound)
	if id == "" {
		return nil, nil
	}
	list := &workv1alpha1.WorkList{}
	if err := r.karmada.List(ctx, list, client.MatchingFields{bindingIDField: id}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Works of the binding: %w", err)
	}
	works := make([]*workv1alpha1.Work, 0, len(list.Items))
	for i := range list.Items {
		if binding.BelongsTo(&list.Items[i], bound) {
			works = append(works, &list.Items[i])
		}
	}
	sameKey, err := r.worksByKey(ctx, client.ObjectKeyFromObject(bound))
	if err != nil {
		return nil, err
	}
	for _, each := range sameKey {
		if other := each.Labels[binding.PermanentIDLabel(bound)]; other != "" && other != id {
			works = append(works, each)
		}
	}
	return works, nil
}

// withoutEarlierWorks leaves out the Works of an earlier binding until this one is scheduled.
// A new binding has no clusters yet, and is likely to be scheduled to the same clusters as the
// earlier one.
func withoutEarlierWorks(orphans []*workv1alpha1.Work, bound binding.Object) []*workv1alpha1.Work {
	if binding.ExpectedClusters(bound.BindingSpec()).Len() > 0 {
		return orphans
	}
	label, id := binding.PermanentIDLabel(bound), binding.PermanentID(bound)
	return slices.DeleteFunc(orphans, func(each *workv1alpha1.Work) bool { return each.Labels[label] != id })
}

// finalize deletes the Works of a deleted binding, and then removes the binding's finalizer.
// The finalizers of the Works protect the objects in the members.
func (r *reconciler) finalize(ctx context.Context, bound binding.Object, works []*workv1alpha1.Work) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(bound, binding.Finalizer(bound)) {
		return reconcile.Result{}, nil
	}
	works, err := r.onlyUnowned(ctx, binding.PermanentID(bound), works)
	if err == nil {
		err = r.deleteWorks(ctx, works)
	}
	if err != nil {
		return r.recordCleanupFailure(bound, err)
	}
	r.failureReporter.delete(client.ObjectKeyFromObject(bound))
	finalized := binding.Copy(bound)
	controllerutil.RemoveFinalizer(finalized, binding.Finalizer(bound))
	_, err = patch.Object(ctx, r.karmada, bound, finalized)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: staleRetryDelay}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// deleteOrphans deletes Works that the binding does not need. It reads the binding from the
// API server first: acting on a stale binding could remove a workload from a cluster to which
// it has just been scheduled.
func (r *reconciler) deleteOrphans(ctx context.Context, bound binding.Object, orphans []*workv1alpha1.Work) error {
	orphans = withoutTerminating(orphans)
	if len(orphans) == 0 {
		r.events.ClearFailure(bound, workv1alpha2.EventReasonCleanupWorkFailed)
		return nil
	}
	current := binding.New(r.namespaced)
	err := r.karmadaReader.Get(ctx, client.ObjectKeyFromObject(bound), current)
	if apierrors.IsNotFound(err) {
		return errStale
	}
	if err != nil {
		return fmt.Errorf("confirming that the binding does not need %d Works: %w", len(orphans), err)
	}
	if current.GetUID() != bound.GetUID() || current.GetGeneration() != bound.GetGeneration() {
		return errStale
	}
	if orphans, err = r.onlyUnowned(ctx, binding.PermanentID(bound), orphans); err != nil {
		return err
	}
	return r.deleteWorks(ctx, orphans)
}

// recordCleanupFailure records that Works could not be deleted, unless the cache was stale.
func (r *reconciler) recordCleanupFailure(bound binding.Object, err error) (reconcile.Result, error) {
	if isCacheStale(err) {
		return reconcile.Result{RequeueAfter: staleRetryDelay}, nil
	}
	r.events.RecordFailure(bound, workv1alpha2.EventReasonCleanupWorkFailed, err)
	return reconcile.Result{}, err
}

// clustersToPurge returns the clusters that must be purged before any other cluster gets the
// template. A cluster that an administrator declared dead is not waited for.
func (r *reconciler) clustersToPurge(ctx context.Context, spec *workv1alpha2.ResourceBindingSpec) sets.Set[string] {
	purged := binding.DirectlyPurgedClusters(spec)
	for name := range purged {
		cluster := &clusterv1alpha1.Cluster{}
		// A cluster that cannot be read was not declared dead.
		err := r.karmada.Get(ctx, types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy)
		if err == nil && cluster.DeclaredDead() {
			purged.Delete(name)
		}
	}
	return purged
}

// withoutTerminating returns the Works that are not being deleted.
func withoutTerminating(works []*workv1alpha1.Work) []*workv1alpha1.Work {
	var remaining []*workv1alpha1.Work
	for _, each := range works {
		if each.DeletionTimestamp == nil {
			remaining = append(remaining, each)
		}
	}
	return remaining
}

// deleteWorks deletes Works, several in parallel.
func (r *reconciler) deleteWorks(ctx context.Context, works []*workv1alpha1.Work) error {
	works = withoutTerminating(works)
	failures := make([]error, len(works))
	var deleters errgroup.Group
	deleters.SetLimit(max(r.options.Writers, 1))
	for i, each := range works {
		deleters.Go(func() error {
			failures[i] = r.deleteOrUnbindWork(ctx, each)
			return nil
		})
	}
	_ = deleters.Wait()
	return errors.Join(failures...)
}

// deleteOrUnbindWork deletes a Work. The Work of a Namespace that is propagated to every
// cluster is unbound instead, because its deletion would delete all objects in that Namespace
// of the member.
//
// The precondition protects a later Work of the same name.
func (r *reconciler) deleteOrUnbindWork(ctx context.Context, each *workv1alpha1.Work) error {
	key := client.ObjectKeyFromObject(each)
	needed, err := r.isNeededByNamespace(ctx, each)
	if err != nil {
		return err
	}
	if needed {
		_, err := patch.Object(ctx, r.karmada, each, work.WithoutBinding(each))
		return client.IgnoreNotFound(err)
	}
	deleted := &workv1alpha1.Work{}
	deleted.Namespace, deleted.Name = each.Namespace, each.Name
	if err := r.karmada.Delete(ctx, deleted, client.Preconditions{UID: &each.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Work %s: %w", key, err)
	}
	return nil
}

// isNeededByNamespace reports whether a Namespace that exists and is not being deleted owns
// the Work.
func (r *reconciler) isNeededByNamespace(ctx context.Context, each *workv1alpha1.Work) (bool, error) {
	owner := work.NamespaceOwner(each)
	if owner == nil {
		return false, nil
	}
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	namespace, err := r.templateReader.Get(ctx, kind, types.NamespacedName{Name: owner.Name})
	if err != nil || namespace == nil {
		return false, err
	}
	return namespace.GetUID() == owner.UID && namespace.GetDeletionTimestamp() == nil, nil
}
