package detector

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
)

const (
	// staleRetryDelay is the time until the next reconcile after the cache was out of date.
	staleRetryDelay = 50 * time.Millisecond
	// blockedRetryDelay is the time until the next reconcile of a template that waits for
	// another component.
	blockedRetryDelay = time.Second
)

// errStale is returned when a write meets a newer state than the one that was read.
var errStale = errors.New("the cache is out of date")

// templateReconciler reconciles templates.
type templateReconciler struct{ *detector }

// Reconcile implements reconcile.TypedReconciler.
func (t templateReconciler) Reconcile(ctx context.Context, request templateRequest) (reconcile.Result, error) {
	old := t.initialTemplates.take(request.templateRef)
	if !t.watchedKinds.has(request.kind) || t.isSkipped(request.templateRef) {
		return reconcile.Result{}, nil
	}
	template, err := t.template(ctx, request.templateRef)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch decision := t.decide(request.templateRef, template).(type) {
	case policy.ApplyPolicy:
		return t.applyPolicy(ctx, request, template, decision.Policy)
	case policy.ReleaseClaim:
		return t.confirmAndRelease(ctx, decision.Claim, request.templateRef)
	case policy.RetryLater:
		return t.retryDecision(request.templateRef, template, decision.Err)
	case policy.WaitForPolicy:
		return requeueIfStale(t.awaitPolicy(ctx, request.templateRef, template, old))
	}
	t.stopTracking(request.templateRef)
	return reconcile.Result{}, nil
}

// stopTracking removes all records of a template that no policy can claim.
func (d *detector) stopTracking(r templateRef) {
	d.waitingTemplates.remove(r)
	d.waitingForOverride.deleteTemplate(r)
	d.waitingForBinding.deleteTemplate(r)
}

// template returns nil when the template does not exist. The result must not be changed.
func (d *detector) template(ctx context.Context, r templateRef) (*unstructured.Unstructured, error) {
	return d.templateReader.GetCached(ctx, r.kind, r.key)
}

// decide returns which policy claims the template. A template without a match is recorded as
// waiting before the second decision. A policy that is added after that decision finds the
// record.
func (d *detector) decide(r templateRef, template *unstructured.Unstructured) policy.Decision {
	if template == nil {
		return policy.IgnoreTemplate{}
	}
	if _, claimed := policy.ClaimedBy(template); !claimed {
		started := time.Now()
		defer func() { d.counters.recordMatch(started) }()
	}
	decision := d.policies.decide(template)
	if _, wait := decision.(policy.WaitForPolicy); !wait {
		return decision
	}
	d.waitingTemplates.add(r, template.GetLabels())
	return d.policies.decide(template)
}

// confirmAndRelease releases a template after confirming that its policy is deleted or does
// not select it any more.
func (d *detector) confirmAndRelease(ctx context.Context, claim policy.Claim, r templateRef) (reconcile.Result, error) {
	if d.policies.get(claim.Namespace, claim.Name) == nil {
		exists, err := d.existsOnServer(ctx, claim)
		if err != nil {
			return reconcile.Result{}, err
		}
		if exists {
			return reconcile.Result{RequeueAfter: blockedRetryDelay}, nil
		}
	}
	return requeueIfStale(d.releaseTemplate(ctx, claim, r))
}

// retryDecision records why the policy cannot claim the template yet, and requeues the
// template. A policy that is being deleted is about to release it, so no event is recorded.
func (d *detector) retryDecision(r templateRef, template *unstructured.Unstructured, err error) (reconcile.Result, error) {
	if errors.Is(err, policy.ErrTerminating) {
		return reconcile.Result{RequeueAfter: blockedRetryDelay}, nil
	}
	if _, claimed := policy.ClaimedBy(template); !claimed {
		d.waitingTemplates.add(r, template.GetLabels())
	}
	d.events.RecordFailure(template, policyv1alpha1.EventReasonApplyPolicyFailed, err)
	return reconcile.Result{}, err
}

// applyPolicy claims the template for the policy, updates its binding, and returns the result
// for the queue.
func (d *detector) applyPolicy(ctx context.Context, request templateRequest, template *unstructured.Unstructured, p policy.Object) (reconcile.Result, error) {
	started := time.Now()
	err := d.claimAndBind(ctx, request, template, p)
	if isCacheStale(err) {
		return requeueIfStale(err)
	}
	d.counters.recordApply(started, err)
	if err == nil {
		d.events.ClearFailure(template, policyv1alpha1.EventReasonApplyPolicyFailed)
		return reconcile.Result{}, nil
	}
	d.events.RecordFailure(template, policyv1alpha1.EventReasonApplyPolicyFailed, err)
	var owner *policy.OwnerError
	var missing *policy.MissingOverridesError
	var collision *policy.CollisionError
	switch {
	case errors.As(err, &missing), errors.As(err, &collision):
		return reconcile.Result{}, nil // the override policy, or the deletion of the other binding, queues it
	case errors.As(err, &owner):
		return reconcile.Result{RequeueAfter: blockedRetryDelay}, nil
	}
	return reconcile.Result{}, err
}

func (d *detector) claimAndBind(ctx context.Context, request templateRequest, template *unstructured.Unstructured, p policy.Object) error {
	if err := d.awaitOverrides(ctx, request, template, p); err != nil {
		return err
	}
	bound, err := d.bindingOf(ctx, request.templateRef)
	if err != nil {
		return err
	}
	if err := d.awaitBindingOwner(ctx, request, template, bound); err != nil {
		return err
	}
	activation, err := policy.DecideActivation(p, template, metadataOf(bound), request.cause)
	if err != nil {
		return err
	}
	state := ""
	if activation.Deferred {
		if state, err = d.recordDeferredState(ctx, template, bound, activation.UserState); err != nil {
			return err
		}
	}
	claimed, err := d.claim(ctx, request.templateRef, template, p, state)
	if err != nil || claimed == nil {
		return err
	}
	d.waitingTemplates.remove(request.templateRef)
	if activation.Deferred {
		d.recordDeferralEvent(request, template, claimed, p, bound)
		return nil
	}
	changed, err := d.bind(ctx, claimed, bound, p, activation.UserState)
	if err == nil && changed && shouldRecordApply(bound, p, request.cause) {
		d.events.RecordDecision(claimed, policyv1alpha1.EventReasonApplyPolicySucceed, "Applied policy %s", policy.ClaimOf(p))
	}
	return err
}

// shouldRecordApply reports whether a write of the binding is recorded as an event on the
// template: the policy is applied for the first time, it is another policy, or it changed. A
// change of the template itself is not recorded, because its author expects it.
func shouldRecordApply(before binding.Object, p policy.Object, cause policy.Trigger) bool {
	if before == nil || cause == policy.PolicyChanged {
		return true
	}
	claim, _ := policy.ClaimedBy(before)
	return claim != policy.ClaimOf(p)
}

// isCacheStale reports whether an error means only that the cache was out of date. A joined
// error must consist of such errors only.
func isCacheStale(err error) bool {
	if err == nil {
		return false
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			if !isCacheStale(one) {
				return false
			}
		}
		return true
	}
	return errors.Is(err, errStale) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// requeueIfStale converts the error of a write to a result for the queue. A stale cache is
// retried shortly without a log line.
func requeueIfStale(err error) (reconcile.Result, error) {
	if isCacheStale(err) {
		return reconcile.Result{RequeueAfter: staleRetryDelay}, nil
	}
	return reconcile.Result{}, err
}

// isNamespaceTerminating reports whether a create was rejected because the namespace is being
// deleted.
func isNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// notFoundAsStale converts NotFound for an object that should be changed to errStale.
func notFoundAsStale(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %v", errStale, err) //nolint:errorlint // the next reconcile finds out why
	}
	return err
}
