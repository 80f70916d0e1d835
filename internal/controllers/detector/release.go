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

// release takes a claim off the binding and then off the template, where they
// carry it. What was made of the binding stays. A process that dies between the
// two finds the template still claimed, and goes on from there.
func (d *detector) release(ctx context.Context, claim policy.Claim, r reference) error {
	bound, err := d.releaseBinding(ctx, claim, r)
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
		d.tellLoss(released, claim)
	}
	return client.IgnoreNotFound(err)
}

// tellLoss says that a template that was propagated follows no policy any more.
// Nothing else shows it: the binding and all that was made of it stay, and every
// later change of the template is without effect. It is told once, with the write
// that releases the template. A template that the next policy takes over has lost
// nothing, and one that never had a policy has nothing to lose: most objects of a
// control plane are of that sort.
func (d *detector) tellLoss(template *unstructured.Unstructured, claim policy.Claim) {
	if template.GetDeletionTimestamp() != nil {
		return
	}
	if _, wait := d.policies.decide(template).(policy.Wait); wait {
		d.events.Decided(template, policyv1alpha1.EventReasonPolicyLost,
			"Policy %s let go and no other selects it: what was propagated stays in the member clusters and follows it no longer", claim)
	}
}

// releaseBinding returns the binding of the template; nil when it has none. What
// belongs to another template is none of its business.
func (d *detector) releaseBinding(ctx context.Context, claim policy.Claim, r reference) (binding.Object, error) {
	bound, err := d.bindingOf(ctx, r)
	if err != nil || bound == nil || !policy.Holds(bound, r.kind.GroupKind(), r.key.Name) {
		return nil, err
	}
	return bound, d.unclaim(ctx, claim, bound)
}

// releaseLeftover takes whatever claim there is off the binding of a template
// that has none: a pass that made the binding ran beside one that released the
// template.
func (d *detector) releaseLeftover(ctx context.Context, template *unstructured.Unstructured, bound binding.Object) error {
	if bound == nil || !metav1.IsControlledBy(bound, template) {
		return nil
	}
	claim, claimed := policy.ClaimedBy(bound)
	if !claimed {
		return nil
	}
	return d.unclaim(ctx, claim, bound)
}

func (d *detector) unclaim(ctx context.Context, claim policy.Claim, bound binding.Object) error {
	released := binding.Copy(bound)
	if !claim.Remove(released) {
		return nil
	}
	_, err := patch.Object(ctx, d.karmada, bound, released)
	return client.IgnoreNotFound(err)
}
