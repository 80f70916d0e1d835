package binding

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// worksOf returns the Works of a binding, including terminating Works. These are the Works with the
// ID of the binding, and the Works of an earlier binding of the same name. The Works are shared
// with the cache and must not be changed.
func (r *reconciler) worksOf(ctx context.Context, bound binding.Object) ([]*workv1alpha1.Work, error) {
	id := binding.PermanentID(bound)
	if id == "" {
		return nil, nil
	}
	works, err := loop.ListWorksOfBinding(ctx, r.karmada, bound)
	if err != nil {
		return nil, err
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

// withoutEarlierWorks returns the orphans without the Works of an earlier binding of the same name,
// as long as this binding is not scheduled. These Works are kept because this binding is likely to
// be scheduled to the same clusters as the earlier one.
func withoutEarlierWorks(orphans []*workv1alpha1.Work, bound binding.Object) []*workv1alpha1.Work {
	if binding.ExpectedClusters(bound.BindingSpec()).Len() > 0 {
		return orphans
	}
	label, id := binding.PermanentIDLabel(bound), binding.PermanentID(bound)
	return slices.DeleteFunc(orphans, func(each *workv1alpha1.Work) bool { return each.Labels[label] != id })
}

// finalize deletes the Works of a deleted binding, and then removes the finalizer of the binding.
// The finalizers of the Works protect the objects in the members. The finalizer of the binding stays
// as long as a suspension keeps Works.
func (r *reconciler) finalize(ctx context.Context, bound binding.Object, works []*workv1alpha1.Work) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(bound, binding.Finalizer(bound)) {
		return reconcile.Result{}, nil
	}
	works, err := r.onlyUnowned(ctx, binding.PermanentID(bound), works)
	removable := withoutKeptWorks(works, bound)
	if err == nil {
		err = r.deleteWorks(ctx, removable)
	}
	if err != nil || len(removable) < len(works) {
		return r.recordCleanupFailure(bound, err)
	}
	finalized := binding.Copy(bound)
	controllerutil.RemoveFinalizer(finalized, binding.Finalizer(bound))
	_, err = patch.Object(ctx, r.karmada, bound, finalized)
	return loop.Result(client.IgnoreNotFound(err))
}

// deleteOrphans deletes Works that the binding does not need. It first reads the binding from the
// API server, because with a stale binding it could remove a workload from a cluster to which the
// binding has just been scheduled.
func (r *reconciler) deleteOrphans(ctx context.Context, bound binding.Object, orphans []*workv1alpha1.Work) error {
	orphans = withoutKeptWorks(withoutTerminating(orphans), bound)
	if len(orphans) == 0 {
		r.events.ClearFailure(bound, workv1alpha2.EventReasonCleanupWorkFailed)
		return nil
	}
	current := binding.New(r.namespaced)
	err := r.karmadaReader.Get(ctx, client.ObjectKeyFromObject(bound), current)
	if apierrors.IsNotFound(err) {
		return loop.ErrStale
	}
	if err != nil {
		return fmt.Errorf("confirming that the binding does not need %d Works: %w", len(orphans), err)
	}
	if current.GetUID() != bound.GetUID() || current.GetGeneration() != bound.GetGeneration() {
		return loop.ErrStale
	}
	// The record of suspended dependents is not part of the generation.
	orphans = withoutKeptWorks(orphans, current)
	if orphans, err = r.onlyUnowned(ctx, binding.PermanentID(bound), orphans); err != nil {
		return err
	}
	return r.deleteWorks(ctx, orphans)
}

// withoutKeptWorks returns the Works that no suspension of the binding keeps.
func withoutKeptWorks(works []*workv1alpha1.Work, bound binding.Object) []*workv1alpha1.Work {
	return slices.DeleteFunc(slices.Clone(works), func(each *workv1alpha1.Work) bool {
		return work.IsKeptBySuspension(each, bound)
	})
}

// reportKeptWorks updates the condition about Works that a suspension keeps, and returns the binding
// with this condition.
func (r *reconciler) reportKeptWorks(ctx context.Context, bound binding.Object, works []*workv1alpha1.Work) (binding.Object, error) {
	isSuspended := bound.BindingSpec().Suspension != nil || binding.HasSuspendedDependents(bound)
	if !isSuspended && conditions.Get(bound.BindingStatus().Conditions, workv1alpha2.DeletionSuspended) == nil {
		return bound, nil
	}
	reported := binding.Copy(bound)
	work.SetDeletionSuspended(reported, works, metav1.Now())
	changed, err := patch.Status(ctx, r.karmada, bound, reported)
	if err != nil || !changed {
		return bound, client.IgnoreNotFound(err)
	}
	r.writes.Record(client.ObjectKeyFromObject(reported), reported)
	return reported, nil
}

// recordCleanupFailure records an event if Works could not be deleted, unless the cause is a stale
// cache.
func (r *reconciler) recordCleanupFailure(bound binding.Object, err error) (reconcile.Result, error) {
	if err != nil && !loop.IsStale(err) {
		r.events.RecordFailure(bound, workv1alpha2.EventReasonCleanupWorkFailed, err)
	}
	return loop.Result(err)
}

// clustersToPurge returns the clusters from which the template must be removed before any other
// cluster gets it. It leaves out clusters that an administrator declared dead.
func (r *reconciler) clustersToPurge(ctx context.Context, spec *workv1alpha2.ResourceBindingSpec) sets.Set[string] {
	purged := binding.DirectlyPurgedClusters(spec)
	for name := range purged {
		cluster := &clusterv1alpha1.Cluster{}
		// A cluster that cannot be read counts as not declared dead.
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

// deleteWorks deletes several Works in parallel.
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

// deleteOrUnbindWork deletes a Work. If the Work contains a Namespace that is propagated to every
// cluster, it only removes the data of the binding from the Work, because the deletion of the Work
// would delete all objects in that Namespace of the member.
//
// The precondition of the request prevents the deletion of a later Work with the same name.
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

// isNeededByNamespace reports whether the Work is owned by a Namespace that exists and is not being
// deleted.
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
