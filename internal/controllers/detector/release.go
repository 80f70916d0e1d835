package detector

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
)

// releaseTemplate removes a claim from the binding and then from the template. The binding and
// its Works stay. If the process dies between the two writes, the template is still claimed
// and the next reconcile continues.
func (d *detector) releaseTemplate(ctx context.Context, claim policy.Claim, r templateRef) error {
	bound, err := d.unclaimBindingOf(ctx, claim, r)
	if err != nil {
		return err
	}
	template, err := d.template(ctx, r)
	if err != nil || template == nil {
		return err
	}
	released := template.DeepCopy()
	if !claim.Remove(released) {
		return nil
	}
	changed, err := patch.Object(ctx, d.karmada, template, released)
	if changed && bound != nil {
		d.recordPolicyLostEvent(released, claim)
	}
	return client.IgnoreNotFound(err)
}

// recordPolicyLostEvent records on a propagated template that no policy selects it any more.
// No other status shows this: the binding and its Works stay, and later changes of the
// template have no effect. The event is recorded once, with the write that releases the
// template. It is not recorded when another policy claims the template next, or when the
// template was never propagated, which is true for most objects of a control plane.
func (d *detector) recordPolicyLostEvent(template *unstructured.Unstructured, claim policy.Claim) {
	if template.GetDeletionTimestamp() != nil {
		return
	}
	if _, wait := d.policies.decide(template).(policy.WaitForPolicy); wait {
		d.events.RecordDecision(template, policyv1alpha1.EventReasonPolicyLost,
			"Policy %s released this object and no other policy selects it: its copies stay in the member clusters and are not updated any more", claim)
	}
}

// unclaimBindingOf removes the claim from the binding of the template and returns the binding,
// or nil when the template has none. The binding of another template is not changed.
func (d *detector) unclaimBindingOf(ctx context.Context, claim policy.Claim, r templateRef) (binding.Object, error) {
	bound, err := d.bindingOf(ctx, r)
	if err != nil || bound == nil || !policy.IsBindingOf(bound, r.kind.GroupKind(), r.key.Name) {
		return nil, err
	}
	return bound, d.unclaimBinding(ctx, claim, bound)
}

// unclaimLeftover removes any claim from the binding of a template that has none. The claim is
// left over when one reconcile created the binding while another released the template.
func (d *detector) unclaimLeftover(ctx context.Context, template *unstructured.Unstructured, bound binding.Object) error {
	if bound == nil || !metav1.IsControlledBy(bound, template) {
		return nil
	}
	claim, claimed := policy.ClaimedBy(bound)
	if !claimed {
		return nil
	}
	return d.unclaimBinding(ctx, claim, bound)
}

func (d *detector) unclaimBinding(ctx context.Context, claim policy.Claim, bound binding.Object) error {
	released := binding.Copy(bound)
	if !claim.Remove(released) {
		return nil
	}
	_, err := patch.Object(ctx, d.karmada, bound, released)
	return client.IgnoreNotFound(err)
}
