package detector

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/domain/policy"
)

// ClaimLookup returns the claim of the policy that claims an object which is about to be
// created. It returns false when the policy is not certain. The component that stores the
// object can write the claim together with the object, which saves a second write. The
// detector reconciles the template afterwards in any case.
type ClaimLookup func(ctx context.Context, kind schema.GroupVersionKind, object metav1.Object) (policy.Claim, bool)

// publishClaimLookup publishes the lookup once all handlers are in sync, and withdraws it when
// ctx ends.
func (d *detector) publishClaimLookup(ctx context.Context) error {
	if err := d.startup.WaitForSync(ctx); err != nil {
		return err
	}
	d.options.SetClaimLookup(d.lookUpClaim)
	<-ctx.Done()
	d.options.SetClaimLookup(nil)
	return nil
}

// lookUpClaim is a ClaimLookup. It returns false when policies alone do not decide: the policy
// waits for overrides or for the next change, another binding has the name, or the object has
// a claim already. The reconcile of the template handles these cases.
func (d *detector) lookUpClaim(ctx context.Context, kind schema.GroupVersionKind, object metav1.Object) (policy.Claim, bool) {
	r := templateRef{kind: kind, key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}
	if r.key.Name == "" || !d.watchedKinds.has(kind) || d.isSkipped(r) {
		return policy.Claim{}, false
	}
	started := time.Now()
	template := newTemplateStub(r, object.GetLabels())
	template.SetAnnotations(object.GetAnnotations())
	if _, claimed := policy.ClaimedBy(template); claimed {
		return policy.Claim{}, false
	}
	decision, ok := d.policies.decide(template).(policy.ApplyPolicy)
	if !ok || policy.IsLazy(decision.Policy) || len(decision.Policy.PropagationSpec().DependentOverrides) > 0 {
		return policy.Claim{}, false
	}
	if bound, err := d.bindingOf(ctx, r); err != nil || bound != nil {
		return policy.Claim{}, false
	}
	d.counters.recordMatch(started)
	return policy.ClaimOf(decision.Policy), true
}
