package detector

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/policy"
)

func (d *detector) mayPreempt(p policy.Object) bool {
	return d.options.Preemption && policy.CanPreempt(p)
}

// preempt takes over the templates that a policy selects by name from policies of lower
// precedence. The new claim triggers an ordinary reconcile of the template.
func (d *detector) preempt(ctx context.Context, p policy.Object) error {
	if !d.mayPreempt(p) {
		return nil
	}
	if policy.ClaimOf(p).ID == "" {
		return fmt.Errorf("policy %s: %w", policy.ClaimOf(p), policy.ErrNoPermanentID)
	}
	var failures []error
	for _, filter := range filtersOf(p) {
		if filter.name == "" {
			continue
		}
		ref := templateRef{kind: filter.kind, key: types.NamespacedName{Namespace: filter.namespace, Name: filter.name}}
		failures = append(failures, d.preemptTemplate(ctx, p, ref))
	}
	return errors.Join(failures...)
}

func (d *detector) preemptTemplate(ctx context.Context, p policy.Object, ref templateRef) error {
	template, err := d.template(ctx, ref)
	if err != nil {
		return err
	}
	if template == nil || template.GetDeletionTimestamp() != nil || !policy.Selects(p, template) {
		return nil
	}
	claim, _ := policy.ClaimedBy(template)
	yields, err := policy.Preempts(p, claim, d.policies.get(claim.Namespace, claim.Name))
	if err == nil && !yields {
		return nil
	}
	if err == nil {
		err = d.takeOver(ctx, p, template)
	}
	if isCacheStale(err) {
		return err
	}
	d.counters.recordPreemption(err)
	if err != nil {
		err = fmt.Errorf("preempting %s for policy %s: %w", ref, policy.ClaimOf(p), err)
		d.events.RecordFailure(template, policyv1alpha1.EventReasonPreemptPolicyFailed, err)
		return err
	}
	d.events.ClearFailure(template, policyv1alpha1.EventReasonPreemptPolicyFailed)
	d.events.RecordDecision(template, policyv1alpha1.EventReasonPreemptPolicySucceed,
		"Policy %s preempted policy %s", policy.ClaimOf(p), claim)
	return nil
}

func (d *detector) takeOver(ctx context.Context, p policy.Object, template *unstructured.Unstructured) error {
	taken := template.DeepCopy()
	policy.ClaimOf(p).Apply(taken)
	_, err := patch.Object(ctx, d.karmada, template, taken)
	return client.IgnoreNotFound(err)
}
