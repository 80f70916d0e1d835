package detector

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
)

// release takes a claim off the binding and then off the template, where they
// carry it. What was made of the binding stays. A process that dies between the
// two finds the template still claimed, and goes on from there.
func (d *detector) release(ctx context.Context, claim policy.Claim, r reference) error {
	if err := d.releaseBinding(ctx, claim, r); err != nil {
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
	_, err = patch.Object(ctx, d.karmada, template, released)
	return client.IgnoreNotFound(err)
}

func (d *detector) releaseBinding(ctx context.Context, claim policy.Claim, r reference) error {
	bound, err := d.bindingOf(ctx, r)
	if err != nil || bound == nil {
		return err
	}
	return d.unclaim(ctx, claim, bound)
}

// releaseLeftover takes whatever claim there is off the binding of a template
// that has none: a pass that made the binding ran beside one that released the
// template.
func (d *detector) releaseLeftover(ctx context.Context, template *unstructured.Unstructured, r reference) error {
	bound, err := d.bindingOf(ctx, r)
	if err != nil || bound == nil || !metav1.IsControlledBy(bound, template) {
		return err
	}
	claim, claimed := policy.ClaimedBy(bound)
	if !claimed {
		return nil
	}
	return d.unclaim(ctx, claim, bound)
}

func (d *detector) unclaim(ctx context.Context, claim policy.Claim, bound binding.Object) error {
	released, err := copyOf(bound)
	if err != nil {
		return err
	}
	if !claim.Remove(released) {
		return nil
	}
	_, err = patch.Object(ctx, d.karmada, bound, released)
	return client.IgnoreNotFound(err)
}
