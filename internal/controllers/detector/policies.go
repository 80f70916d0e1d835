package detector

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/internal/controllers/detector/binder"
	"karmada.io/karmada/internal/controllers/detector/catalog"
	"karmada.io/karmada/internal/controllers/detector/claims"
	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/controllers/detector/waiting"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// policyReconciler reconciles the policies of one scope.
type policyReconciler struct {
	scope     catalog.Scope
	karmada   client.Client
	queue     *templates.Queue
	waiting   *waiting.Templates
	claims    *claims.Index
	binder    *binder.Binder
	preemptor *claims.Preemptor
	releaser  *claims.Releaser
}

// Reconcile implements reconcile.Reconciler.
func (r *policyReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	p := r.scope.NewPolicy()
	if err := r.karmada.Get(ctx, request.NamespacedName, p); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if p.GetDeletionTimestamp() != nil {
		return loop.Result(r.finalize(ctx, p))
	}
	return loop.Result(errors.Join(r.enqueueTemplatesOf(ctx, p), r.preemptor.Preempt(ctx, p), r.binder.SuspendDeleted(ctx, p)))
}

// enqueueTemplatesOf queues every template that the policy claims or may select. The templates get
// low priority, so that changes by users are handled first. The reconcile of a template releases it
// if the policy no longer selects it.
func (r *policyReconciler) enqueueTemplatesOf(ctx context.Context, p policy.Object) error {
	found, err := r.claimedTemplates(ctx, policy.ClaimOf(p))
	if err != nil {
		return err
	}
	for _, filter := range policy.FiltersOf(p) {
		found.Insert(r.waiting.Matching(filter)...)
	}
	found.Insert(r.waiting.NearMisses(p, found, r.claims.IsClaimed)...)
	if err := r.queue.WaitUntilOpen(ctx); err != nil {
		return err
	}
	r.queue.AddLowPriority(policy.PolicyChanged, found.UnsortedList()...)
	return nil
}

// claimedTemplates returns the templates that contain the claim, and the templates whose bindings
// contain it.
func (r *policyReconciler) claimedTemplates(ctx context.Context, claim policy.Claim) (sets.Set[templates.Ref], error) {
	if claim.ID == "" {
		return sets.New[templates.Ref](), nil
	}
	bound, err := r.binder.TemplatesOf(ctx, claim)
	if err != nil {
		return nil, err
	}
	return sets.New(r.claims.TemplatesOf(claim.ID)...).Insert(bound...), nil
}

// finalize releases all templates that a deleted policy claims, and then removes the finalizer of
// the policy. Bindings and Works are kept. A template that is not in the cache yet is released by
// its first reconcile, which finds that the policy does not exist.
func (r *policyReconciler) finalize(ctx context.Context, p policy.Object) error {
	if !controllerutil.ContainsFinalizer(p, r.scope.Finalizer) {
		return nil
	}
	claim := policy.ClaimOf(p)
	claimed, err := r.claimedTemplates(ctx, claim)
	if err != nil {
		return err
	}
	var failures []error
	for ref := range claimed {
		failures = append(failures, r.releaser.Release(ctx, claim, ref))
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	finalized, ok := p.DeepCopyObject().(policy.Object)
	if !ok {
		return nil
	}
	controllerutil.RemoveFinalizer(finalized, r.scope.Finalizer)
	_, err = patch.Object(ctx, r.karmada, p, finalized)
	return client.IgnoreNotFound(err)
}
