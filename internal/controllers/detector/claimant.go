package detector

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/domain/policy"
)

// Claimant answers which policy claims an object that is about to be created, if
// one does for certain. Whoever stores the object can write the claim along with
// it, which saves the write that would follow; it is looked at afterwards all the
// same.
type Claimant func(ctx context.Context, kind schema.GroupVersionKind, object metav1.Object) (policy.Claim, bool)

// offer hands out a claimant once everything that it needs is known, and takes it
// back when ctx ends.
func (d *detector) offer(ctx context.Context) error {
	if err := d.entrance.WaitForSync(ctx); err != nil {
		return err
	}
	d.options.Offer(d.claimant)
	<-ctx.Done()
	d.options.Offer(nil)
	return nil
}

// claimant is a Claimant. It leaves to the pass over the template whatever is not
// decided by looking at policies: a policy that waits for overrides or for the
// next change, a name that another binding has, a claim that is there already.
func (d *detector) claimant(ctx context.Context, kind schema.GroupVersionKind, object metav1.Object) (policy.Claim, bool) {
	r := reference{kind: kind, key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}
	if r.key.Name == "" || !d.kinds.has(kind) || d.skips(r) {
		return policy.Claim{}, false
	}
	started := time.Now()
	template := likeness(r, object.GetLabels())
	template.SetAnnotations(object.GetAnnotations())
	if _, claimed := policy.ClaimedBy(template); claimed {
		return policy.Claim{}, false
	}
	decision, ok := d.policies.decide(template).(policy.Apply)
	if !ok || policy.IsLazy(decision.Policy) || len(decision.Policy.PropagationSpec().DependentOverrides) > 0 {
		return policy.Claim{}, false
	}
	if bound, err := d.bindingOf(ctx, r); err != nil || bound != nil {
		return policy.Claim{}, false
	}
	d.counters.matched(started)
	return policy.ClaimOf(decision.Policy), true
}
