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
	// glance is when to look again at what was written elsewhere a moment ago.
	glance = 50 * time.Millisecond
	// patience is when to look again at what somebody else has to finish first.
	patience = time.Second
)

// errStale says that a write met something newer than what was read.
var errStale = errors.New("our view is behind")

// templateReconciler works on templates.
type templateReconciler struct{ *detector }

// Reconcile implements reconcile.TypedReconciler.
func (t templateReconciler) Reconcile(ctx context.Context, asked request) (reconcile.Result, error) {
	old := t.listed.take(asked.reference)
	if !t.kinds.has(asked.kind) || t.skips(asked.reference) {
		return reconcile.Result{}, nil
	}
	template, err := t.template(ctx, asked.reference)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch decision := t.decide(asked.reference, template).(type) {
	case policy.Apply:
		return t.apply(ctx, asked, template, decision.Policy)
	case policy.Release:
		return t.letGo(ctx, decision.Claim, asked.reference)
	case policy.Retry:
		return t.retry(asked.reference, template, decision.Err)
	case policy.Wait:
		return settle(t.awaitPolicy(ctx, asked.reference, template, old))
	}
	t.forget(asked.reference)
	return reconcile.Result{}, nil
}

// forget drops what is remembered of a template that policies have no say in.
func (d *detector) forget(r reference) {
	d.waiting.remove(r)
	d.overrides.forget(r)
	d.holders.forget(r)
}

// template is nil when there is none. It must not be changed.
func (d *detector) template(ctx context.Context, r reference) (*unstructured.Unstructured, error) {
	return d.reader.Seen(ctx, r.kind, r.key)
}

// decide asks which policy the template follows. Whoever finds none is noted as
// waiting before the last look: a policy that comes after the look finds it.
func (d *detector) decide(r reference, template *unstructured.Unstructured) policy.Decision {
	if template == nil {
		return policy.Ignore{}
	}
	if _, claimed := policy.ClaimedBy(template); !claimed {
		started := time.Now()
		defer func() { d.counters.matched(started) }()
	}
	decision := d.policies.decide(template)
	if _, wait := decision.(policy.Wait); !wait {
		return decision
	}
	d.waiting.add(r, template.GetLabels())
	return d.policies.decide(template)
}

// letGo releases a template whose policy is gone or selects it no longer.
func (d *detector) letGo(ctx context.Context, claim policy.Claim, r reference) (reconcile.Result, error) {
	if d.policies.get(claim.Namespace, claim.Name) == nil {
		unseen, err := d.unseen(ctx, claim)
		if err != nil {
			return reconcile.Result{}, err
		}
		if unseen {
			return reconcile.Result{RequeueAfter: patience}, nil
		}
	}
	return settle(d.release(ctx, claim, r))
}

// retry looks again when a policy may have become able to claim. One that is
// being deleted is about to release the template, which is nobody's fault.
func (d *detector) retry(r reference, template *unstructured.Unstructured, err error) (reconcile.Result, error) {
	if errors.Is(err, policy.ErrTerminating) {
		return reconcile.Result{RequeueAfter: patience}, nil
	}
	if _, claimed := policy.ClaimedBy(template); !claimed {
		d.waiting.add(r, template.GetLabels())
	}
	d.events.Failed(template, policyv1alpha1.EventReasonApplyPolicyFailed, err)
	return reconcile.Result{}, err
}

// apply claims the template for the policy, brings its binding in line, and says
// what that means for the queue.
func (d *detector) apply(ctx context.Context, asked request, template *unstructured.Unstructured, p policy.Object) (reconcile.Result, error) {
	started := time.Now()
	err := d.claimAndBind(ctx, asked, template, p)
	if stale(err) {
		return settle(err)
	}
	d.counters.applied(started, err)
	if err == nil {
		d.events.Recovered(template, policyv1alpha1.EventReasonApplyPolicyFailed)
		return reconcile.Result{}, nil
	}
	d.events.Failed(template, policyv1alpha1.EventReasonApplyPolicyFailed, err)
	var owner *policy.OwnerError
	var missing *policy.MissingOverridesError
	var collision *policy.CollisionError
	switch {
	case errors.As(err, &missing), errors.As(err, &collision):
		return reconcile.Result{}, nil // the override, or the end of the holder, wakes it
	case errors.As(err, &owner):
		return reconcile.Result{RequeueAfter: patience}, nil
	}
	return reconcile.Result{}, err
}

func (d *detector) claimAndBind(ctx context.Context, asked request, template *unstructured.Unstructured, p policy.Object) error {
	if err := d.awaitOverrides(ctx, asked, template, p); err != nil {
		return err
	}
	bound, err := d.bindingOf(ctx, asked.reference)
	if err != nil {
		return err
	}
	if err := d.awaitHolder(ctx, asked, template, bound); err != nil {
		return err
	}
	activation, err := policy.Activate(p, template, metadataOf(bound), asked.cause)
	if err != nil {
		return err
	}
	state := ""
	if activation.Deferred {
		if state, err = d.postpone(ctx, template, bound, activation.UserState); err != nil {
			return err
		}
	}
	claimed, err := d.claim(ctx, asked.reference, template, p, state)
	if err != nil || claimed == nil {
		return err
	}
	d.waiting.remove(asked.reference)
	if activation.Deferred {
		d.reportDeferral(asked, template, claimed, p, bound)
		return nil
	}
	changed, err := d.bind(ctx, claimed, bound, p, activation.UserState)
	if err == nil && changed && isNews(bound, p, asked.cause) {
		d.events.Decided(claimed, policyv1alpha1.EventReasonApplyPolicySucceed, "Applied policy %s", policy.ClaimOf(p))
	}
	return err
}

// isNews reports whether a write of the binding tells the owner of a template
// something: that a policy is applied to it at last, that it is another one, or
// that the policy changed. That his own change goes its way is what he expects.
func isNews(before binding.Object, p policy.Object, cause policy.Cause) bool {
	if before == nil || cause == policy.PolicyChanged {
		return true
	}
	claim, _ := policy.ClaimedBy(before)
	return claim != policy.ClaimOf(p)
}

// stale reports whether an error only says that our view was behind, also when
// it joins several errors.
func stale(err error) bool {
	if err == nil {
		return false
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			if !stale(one) {
				return false
			}
		}
		return true
	}
	return errors.Is(err, errStale) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// settle turns the outcome of writes into what the queue has to know: who was
// behind looks again, silently.
func settle(err error) (reconcile.Result, error) {
	if stale(err) {
		return reconcile.Result{RequeueAfter: glance}, nil
	}
	return reconcile.Result{}, err
}

// ending reports whether a create was refused because the namespace goes.
func ending(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// gone turns the absence of what was to be changed into a stale view.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %v", errStale, err) //nolint:errorlint // what is not found is found out by looking again
	}
	return err
}
