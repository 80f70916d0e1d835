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

// worksOf are the Works of a binding, those in deletion included: those with its id,
// and those that an earlier binding of the same name left. They are shared with the
// cache and must not be changed.
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
		if binding.IsOf(&list.Items[i], bound) {
			works = append(works, &list.Items[i])
		}
	}
	claiming, err := r.claiming(ctx, client.ObjectKeyFromObject(bound))
	if err != nil {
		return nil, err
	}
	for _, each := range claiming {
		if other := each.Labels[binding.PermanentIDLabel(bound)]; other != "" && other != id {
			works = append(works, each)
		}
	}
	return works, nil
}

// judgeable leaves out what an earlier binding left, until it is known where this
// one is to be: a binding that was just made is expected nowhere, and is likely to
// be scheduled to where its predecessor was.
func judgeable(orphans []*workv1alpha1.Work, bound binding.Object) []*workv1alpha1.Work {
	if binding.Expected(bound.BindingSpec()).Len() > 0 {
		return orphans
	}
	label, id := binding.PermanentIDLabel(bound), binding.PermanentID(bound)
	return slices.DeleteFunc(orphans, func(each *workv1alpha1.Work) bool { return each.Labels[label] != id })
}

// release deletes the Works of a binding that goes, and lets it go. The Works'
// own finalizer protects what is in the members.
func (r *reconciler) release(ctx context.Context, bound binding.Object, works []*workv1alpha1.Work) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(bound, binding.Finalizer(bound)) {
		return reconcile.Result{}, nil
	}
	works, err := r.unclaimed(ctx, binding.PermanentID(bound), works)
	if err == nil {
		err = r.remove(ctx, works)
	}
	if err != nil {
		return r.unclean(bound, err)
	}
	r.failing.forget(client.ObjectKeyFromObject(bound))
	released := binding.Copy(bound)
	controllerutil.RemoveFinalizer(released, binding.Finalizer(bound))
	_, err = patch.Object(ctx, r.karmada, bound, released)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: lagDelay}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// removeOrphans deletes Works that have no reason to be. The binding is looked at
// as it is stored first: acting on an old view of it would take a workload away
// from where it has just been scheduled to.
func (r *reconciler) removeOrphans(ctx context.Context, bound binding.Object, orphans []*workv1alpha1.Work) error {
	orphans = lasting(orphans)
	if len(orphans) == 0 {
		r.events.Recovered(bound, workv1alpha2.EventReasonCleanupWorkFailed)
		return nil
	}
	current := binding.New(r.namespaced)
	err := r.live.Get(ctx, client.ObjectKeyFromObject(bound), current)
	if apierrors.IsNotFound(err) {
		return errLag
	}
	if err != nil {
		return fmt.Errorf("confirming that %d Works are orphans: %w", len(orphans), err)
	}
	if current.GetUID() != bound.GetUID() || current.GetGeneration() != bound.GetGeneration() {
		return errLag
	}
	if orphans, err = r.unclaimed(ctx, binding.PermanentID(bound), orphans); err != nil {
		return err
	}
	return r.remove(ctx, orphans)
}

// unclean tells that Works could not be deleted, unless it was too early to try.
func (r *reconciler) unclean(bound binding.Object, err error) (reconcile.Result, error) {
	if lagging(err) {
		return reconcile.Result{RequeueAfter: lagDelay}, nil
	}
	r.events.Failed(bound, workv1alpha2.EventReasonCleanupWorkFailed, err)
	return reconcile.Result{}, err
}

// purged are the clusters that must be empty before any other gets the template. One
// that an administrator has given up is as good as empty.
func (r *reconciler) purged(ctx context.Context, spec *workv1alpha2.ResourceBindingSpec) sets.Set[string] {
	purged := binding.DirectlyPurged(spec)
	for name := range purged {
		cluster := &clusterv1alpha1.Cluster{}
		// One that cannot be read was not given up.
		err := r.karmada.Get(ctx, types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy)
		if err == nil && cluster.DeclaredDead() {
			purged.Delete(name)
		}
	}
	return purged
}

// lasting are the Works that are not in deletion yet.
func lasting(works []*workv1alpha1.Work) []*workv1alpha1.Work {
	var kept []*workv1alpha1.Work
	for _, each := range works {
		if each.DeletionTimestamp == nil {
			kept = append(kept, each)
		}
	}
	return kept
}

// remove deletes Works, several at a time.
func (r *reconciler) remove(ctx context.Context, works []*workv1alpha1.Work) error {
	works = lasting(works)
	failed := make([]error, len(works))
	var removers errgroup.Group
	removers.SetLimit(max(r.options.Writers, 1))
	for i, each := range works {
		removers.Go(func() error {
			failed[i] = r.removeOne(ctx, each)
			return nil
		})
	}
	_ = removers.Wait()
	return errors.Join(failed...)
}

// removeOne deletes a Work. That of a Namespace which goes to every cluster is
// given back instead: with it the member would lose everything in that Namespace.
//
// The precondition keeps the request from hitting another Work that took the name
// meanwhile.
func (r *reconciler) removeOne(ctx context.Context, each *workv1alpha1.Work) error {
	key := client.ObjectKeyFromObject(each)
	wanted, err := r.wantedByNamespace(ctx, each)
	if err != nil {
		return err
	}
	if wanted {
		_, err := patch.Object(ctx, r.karmada, each, work.Unbind(each))
		return client.IgnoreNotFound(err)
	}
	gone := &workv1alpha1.Work{}
	gone.Namespace, gone.Name = each.Namespace, each.Name
	if err := r.karmada.Delete(ctx, gone, client.Preconditions{UID: &each.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Work %s: %w", key, err)
	}
	return nil
}

// wantedByNamespace tells whether a Namespace that exists, and is to go on, owns
// the Work.
func (r *reconciler) wantedByNamespace(ctx context.Context, each *workv1alpha1.Work) (bool, error) {
	owner := work.NamespaceOwner(each)
	if owner == nil {
		return false, nil
	}
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	namespace, err := r.templates.Get(ctx, kind, types.NamespacedName{Name: owner.Name})
	if err != nil || namespace == nil {
		return false, err
	}
	return namespace.GetUID() == owner.UID && namespace.GetDeletionTimestamp() == nil, nil
}
