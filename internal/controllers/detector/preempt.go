package detector

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// preemptor lets policies take over templates from other policies.
type preemptor struct {
	// enabled is false if no policy may preempt other policies.
	enabled   bool
	karmada   client.Client
	templates templateReader
	// policy returns a policy by name, or nil if it does not exist.
	policy func(namespace, name string) policy.Object
	events *loop.Events
	// recordPreemption counts a preemption and its result.
	recordPreemption func(error)
}

// preempt takes over the templates that a policy selects by name and that policies of lower
// precedence claim. The new claim queues the template for a reconcile.
func (e *preemptor) preempt(ctx context.Context, p policy.Object) error {
	if !e.enabled || !policy.CanPreempt(p) {
		return nil
	}
	if policy.ClaimOf(p).ID == "" {
		return fmt.Errorf("policy %s: %w", policy.ClaimOf(p), policy.ErrNoPermanentID)
	}
	var failures []error
	for _, filter := range policy.FiltersOf(p) {
		if filter.Name == "" {
			continue
		}
		failures = append(failures, e.preemptTemplate(ctx, p, newRef(filter.Kind, filter.Namespace, filter.Name)))
	}
	return errors.Join(failures...)
}

func (e *preemptor) preemptTemplate(ctx context.Context, p policy.Object, r templateRef) error {
	template, err := e.templates.GetCached(ctx, r.Kind, r.Key)
	if err != nil {
		return err
	}
	if template == nil || template.GetDeletionTimestamp() != nil || !policy.Selects(p, template) {
		return nil
	}
	claim, _ := policy.ClaimedBy(template)
	yields, err := policy.Preempts(p, claim, e.policy(claim.Namespace, claim.Name))
	if err == nil && !yields {
		return nil
	}
	if err == nil {
		err = e.takeOver(ctx, p, template)
	}
	if loop.IsStale(err) {
		return err
	}
	e.recordPreemption(err)
	if err != nil {
		err = fmt.Errorf("preempting %s for policy %s: %w", r, policy.ClaimOf(p), err)
		e.events.RecordFailure(template, policyv1alpha1.EventReasonPreemptPolicyFailed, err)
		return err
	}
	e.events.ClearFailure(template, policyv1alpha1.EventReasonPreemptPolicyFailed)
	e.events.RecordDecision(template, policyv1alpha1.EventReasonPreemptPolicySucceed,
		"Policy %s preempted policy %s", policy.ClaimOf(p), claim)
	return nil
}

func (e *preemptor) takeOver(ctx context.Context, p policy.Object, template *unstructured.Unstructured) error {
	taken := template.DeepCopy()
	policy.ClaimOf(p).Apply(taken)
	_, err := patch.Object(ctx, e.karmada, template, taken)
	return client.IgnoreNotFound(err)
}
