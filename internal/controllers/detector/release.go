package detector

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// bindingUnclaimer removes a claim from the binding of a template. It returns the binding, or nil
// if the template has no binding.
type bindingUnclaimer interface {
	unclaimTemplate(ctx context.Context, claim policy.Claim, r templateRef) (binding.Object, error)
}

// releaser releases templates from policies.
type releaser struct {
	karmada   client.Client
	templates templateReader
	bindings  bindingUnclaimer
	policies  policyDecider
	events    *loop.Events
}

// release removes a claim from the binding and then from the template. The binding and its Works
// are kept.
func (l *releaser) release(ctx context.Context, claim policy.Claim, r templateRef) error {
	bound, err := l.bindings.unclaimTemplate(ctx, claim, r)
	if err != nil {
		return err
	}
	template, err := l.templates.GetCached(ctx, r.Kind, r.Key)
	if err != nil || template == nil {
		return err
	}
	released := template.DeepCopy()
	if !claim.Remove(released) {
		return nil
	}
	changed, err := patch.Object(ctx, l.karmada, template, released)
	if changed && bound != nil {
		l.recordPolicyLost(released, claim)
	}
	return client.IgnoreNotFound(err)
}

// recordPolicyLost records an event on a propagated template that no policy selects any more. The
// event is needed because no status shows this: the binding and its Works are kept, and later
// changes of the template have no effect. The event is recorded only with the write that releases
// the template. It is recorded neither if another policy claims the template next, nor if the
// template was never propagated, like most objects of a control plane.
func (l *releaser) recordPolicyLost(template *unstructured.Unstructured, claim policy.Claim) {
	if template.GetDeletionTimestamp() != nil {
		return
	}
	if _, wait := l.policies.decide(template).(policy.WaitForPolicy); wait {
		l.events.RecordDecision(template, policyv1alpha1.EventReasonPolicyLost,
			"Policy %s released this object and no other policy selects it: its copies stay in the member clusters and are not updated any more",
			claim)
	}
}
