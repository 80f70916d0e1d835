package detector

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// policyReconciler reconciles the policies of one scope.
type policyReconciler struct {
	scope     policyScope
	karmada   client.Client
	queue     *templateQueue
	waiting   *waitingTemplates
	claims    *claimIndex
	binder    *binder
	preemptor *preemptor
	releaser  *releaser
}

// Reconcile implements reconcile.Reconciler.
func (r *policyReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	p := r.scope.newPolicy()
	if err := r.karmada.Get(ctx, request.NamespacedName, p); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if p.GetDeletionTimestamp() != nil {
		return loop.Result(r.finalize(ctx, p))
	}
	return loop.Result(errors.Join(r.enqueueTemplatesOf(ctx, p), r.preemptor.preempt(ctx, p), r.binder.suspendDeleted(ctx, p)))
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
		found.Insert(r.waiting.matching(filter)...)
	}
	found.Insert(r.waiting.nearMisses(p, found, r.claims.isClaimed)...)
	if err := r.queue.waitUntilOpen(ctx); err != nil {
		return err
	}
	r.queue.addLowPriority(policy.PolicyChanged, found.UnsortedList()...)
	return nil
}

// claimedTemplates returns the templates that contain the claim, and the templates whose bindings
// contain it.
func (r *policyReconciler) claimedTemplates(ctx context.Context, claim policy.Claim) (sets.Set[templateRef], error) {
	if claim.ID == "" {
		return sets.New[templateRef](), nil
	}
	bound, err := r.binder.templatesOf(ctx, claim)
	if err != nil {
		return nil, err
	}
	return sets.New(r.claims.templatesOf(claim.ID)...).Insert(bound...), nil
}

// finalize releases all templates that a deleted policy claims, and then removes the finalizer of
// the policy. Bindings and Works are kept. A template that is not in the cache yet is released by
// its first reconcile, which finds that the policy does not exist.
func (r *policyReconciler) finalize(ctx context.Context, p policy.Object) error {
	if !controllerutil.ContainsFinalizer(p, r.scope.finalizer) {
		return nil
	}
	claim := policy.ClaimOf(p)
	claimed, err := r.claimedTemplates(ctx, claim)
	if err != nil {
		return err
	}
	var failures []error
	for ref := range claimed {
		failures = append(failures, r.releaser.release(ctx, claim, ref))
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	finalized, ok := p.DeepCopyObject().(policy.Object)
	if !ok {
		return nil
	}
	controllerutil.RemoveFinalizer(finalized, r.scope.finalizer)
	_, err = patch.Object(ctx, r.karmada, p, finalized)
	return client.IgnoreNotFound(err)
}
