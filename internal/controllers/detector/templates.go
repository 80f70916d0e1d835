package detector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// blockedRetryDelay is the delay before the next reconcile of a template that waits for another
// component.
const blockedRetryDelay = time.Second

// templateReconciler reconciles templates.
type templateReconciler struct {
	// isTemplate reports whether an object of a watched kind may be propagated.
	isTemplate func(templateRef) bool
	templates  templateReader
	// karmadaReader reads policies from the API server.
	karmadaReader  client.Reader
	policies       *policyCatalog
	waiting        *waitingTemplates
	initial        *oldTemplates
	awaitingObject *waitingRequests
	applier        *applier
	releaser       *releaser
	noMatch        *noMatchReporter
	events         *loop.Events
	// recordMatch records, in metrics, how long the search for the policy of a template took. began
	// is the start of the search.
	recordMatch func(began time.Time)
}

// Reconcile implements reconcile.TypedReconciler.
func (t *templateReconciler) Reconcile(ctx context.Context, request templateRequest) (reconcile.Result, error) {
	old := t.initial.take(request.Template)
	// The watch of the kind may end during the reconcile, which must then leave no record behind.
	defer func() {
		if !t.isTemplate(request.Template) {
			t.stopTracking(request.Template)
		}
	}()
	if !t.isTemplate(request.Template) {
		return reconcile.Result{}, nil
	}
	template, err := t.templates.GetCached(ctx, request.Template.Kind, request.Template.Key)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch decision := t.decide(request.Template, template).(type) {
	case policy.ApplyPolicy:
		return t.applier.apply(ctx, request, template, decision.Policy)
	case policy.ReleaseClaim:
		return t.confirmAndRelease(ctx, decision.Claim, request.Template)
	case policy.RetryLater:
		return t.retryDecision(request.Template, template, decision.Err)
	case policy.WaitForPolicy:
		return loop.Result(t.noMatch.awaitPolicy(ctx, request.Template, template, old))
	}
	t.stopTracking(request.Template)
	return reconcile.Result{}, nil
}

// stopTracking removes all records of a template that no policy can claim.
func (t *templateReconciler) stopTracking(r templateRef) {
	t.waiting.remove(r)
	t.awaitingObject.deleteTemplate(r)
}

// decide returns which policy claims the template. If no policy matches, it records the template as
// waiting and then decides a second time, so that no policy is missed: a policy that is added
// before the second decision takes part in it, and a policy that is added later finds the record.
func (t *templateReconciler) decide(r templateRef, template *unstructured.Unstructured) policy.Decision {
	if template == nil {
		return policy.IgnoreTemplate{}
	}
	if _, claimed := policy.ClaimedBy(template); !claimed {
		began := time.Now()
		defer func() { t.recordMatch(began) }()
	}
	decision := t.policies.decide(template)
	if _, wait := decision.(policy.WaitForPolicy); !wait {
		return decision
	}
	t.waiting.add(r, template.GetLabels())
	return t.policies.decide(template)
}

// confirmAndRelease releases a template after it has confirmed that the policy of the template is
// deleted or no longer selects the template.
func (t *templateReconciler) confirmAndRelease(ctx context.Context, claim policy.Claim, r templateRef) (reconcile.Result, error) {
	if t.policies.get(claim.Namespace, claim.Name) == nil {
		exists, err := t.existsOnServer(ctx, claim)
		if err != nil {
			return reconcile.Result{}, err
		}
		if exists {
			return reconcile.Result{RequeueAfter: blockedRetryDelay}, nil
		}
	}
	return loop.Result(t.releaser.release(ctx, claim, r))
}

// existsOnServer reports whether the policy of a claim exists on the API server although the
// catalog does not contain it yet.
func (t *templateReconciler) existsOnServer(ctx context.Context, claim policy.Claim) (bool, error) {
	err := t.karmadaReader.Get(ctx, types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, newPolicyFor(claim))
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading policy %s from the API server: %w", claim, err)
	}
	return err == nil, nil
}

// retryDecision records why the policy cannot claim the template yet, and queues the template
// again. It records no event for a policy that is being deleted, because that policy is about to
// release the template.
func (t *templateReconciler) retryDecision(r templateRef, template *unstructured.Unstructured, err error) (reconcile.Result, error) {
	if errors.Is(err, policy.ErrTerminating) {
		return reconcile.Result{RequeueAfter: blockedRetryDelay}, nil
	}
	t.waiting.addUnclaimed(r, template)
	t.events.RecordFailure(template, policyv1alpha1.EventReasonApplyPolicyFailed, err)
	return reconcile.Result{}, err
}
