package detector

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/quota"
	"karmada.io/karmada/internal/loop"
)

// applier claims templates for policies and updates their bindings.
type applier struct {
	// karmada reads override policies from the cache.
	karmada        client.Reader
	binder         *binder
	claimer        *claimer
	waiting        *waitingTemplates
	awaitingObject *waitingRequests
	events         *loop.Events
	// recordApply records, in metrics, the duration and the error of an attempt to apply a policy.
	recordApply func(began time.Time, err error)
}

// quotaRetryDelay is the delay before a change is tried again that a quota refused. Usually the quota queues it
// earlier, because it has more room.
const quotaRetryDelay = time.Minute

// apply claims the template for the policy, updates its binding, and returns the result for the
// queue.
func (a *applier) apply(ctx context.Context, request templateRequest, template *unstructured.Unstructured,
	p policy.Object) (reconcile.Result, error) {
	began := time.Now()
	err := a.claimAndBind(ctx, request, template, p)
	if loop.IsStale(err) {
		return loop.Result(err)
	}
	a.recordApply(began, err)
	if err == nil {
		a.events.ClearFailure(template, policyv1alpha1.EventReasonApplyPolicyFailed)
		return reconcile.Result{}, nil
	}
	a.events.RecordFailure(template, policyv1alpha1.EventReasonApplyPolicyFailed, err)
	var owner *policy.OwnerError
	var missing *policy.MissingOverridesError
	switch {
	case errors.As(err, &missing):
		return reconcile.Result{}, nil // the override policy queues it
	case errors.As(err, &owner):
		return reconcile.Result{RequeueAfter: blockedRetryDelay}, nil
	case quota.IsExceeded(err):
		a.awaitingObject.add(quotaKey(template.GetNamespace()), request)
		return reconcile.Result{RequeueAfter: quotaRetryDelay}, nil
	}
	return reconcile.Result{}, err
}

func (a *applier) claimAndBind(ctx context.Context, request templateRequest, template *unstructured.Unstructured, p policy.Object) error {
	if request.Cause == policy.RulesChanged && policy.IsLazy(p) {
		return nil
	}
	if err := a.awaitOverrides(ctx, request, template, p); err != nil {
		return err
	}
	bound, err := a.binder.findBinding(ctx, request.Template)
	if err != nil {
		return err
	}
	activation, err := policy.DecideActivation(p, template, metadataOf(bound), request.Cause)
	if err != nil {
		return err
	}
	state := ""
	if activation.Deferred {
		if state, err = a.binder.recordUserState(ctx, template, bound, activation.UserState); err != nil {
			return err
		}
	}
	claimed, err := a.claimer.claim(ctx, request.Template, template, p, state)
	if err != nil || claimed == nil {
		return err
	}
	a.waiting.remove(request.Template)
	if activation.Deferred {
		if message, ok := policy.DescribeDeferral(template, bound, p, request.Cause); ok {
			a.events.RecordDecision(claimed, policyv1alpha1.EventReasonPolicyDeferred, "%s", message)
		}
		return nil
	}
	changed, err := a.binder.bind(ctx, claimed, bound, p, activation.UserState)
	if err == nil && changed && policy.ShouldRecordApply(bound, p, request.Cause) {
		a.events.RecordDecision(claimed, policyv1alpha1.EventReasonApplyPolicySucceed, "Applied policy %s", policy.ClaimOf(p))
	}
	return err
}

// metadataOf returns the metadata of a binding. For a nil binding it returns a nil interface, not
// an interface that contains a nil pointer.
func metadataOf(bound binding.Object) metav1.Object {
	if bound == nil {
		return nil
	}
	return bound
}

// awaitOverrides returns an error if an override policy on which the propagation policy depends
// does not exist. The request is queued again when such an override policy is created, or when the
// propagation policy changes.
func (a *applier) awaitOverrides(ctx context.Context, r templateRequest, template *unstructured.Unstructured, p policy.Object) error {
	if len(p.PropagationSpec().DependentOverrides) == 0 {
		return nil
	}
	missing := a.missingOverrides(ctx, p)
	if missing == nil {
		return nil
	}
	a.waiting.addUnclaimed(r.Template, template)
	for _, override := range policy.DependentOverrides(p) {
		a.awaitingObject.add(override, r)
	}
	// The override policies are checked again, because an override policy that was created since
	// the first check has not queued the request.
	return a.missingOverrides(ctx, p)
}

func (a *applier) missingOverrides(ctx context.Context, p policy.Object) error {
	var failure error
	err := policy.CheckDependentOverrides(p, func(name types.NamespacedName) bool {
		var found client.Object = &policyv1alpha1.OverridePolicy{}
		if policy.IsCluster(p) {
			found = &policyv1alpha1.ClusterOverridePolicy{}
		}
		err := a.karmada.Get(ctx, name, found)
		if client.IgnoreNotFound(err) != nil {
			failure = fmt.Errorf("reading override policy %s: %w", name, err)
		}
		return err == nil
	})
	if failure != nil {
		return failure
	}
	return err
}
