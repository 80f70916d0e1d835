package detector

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
)

// claimLookup finds the claim for an object before the object is created.
type claimLookup struct {
	// isTemplate reports whether an object can be a template.
	isTemplate func(templateRef) bool
	policies   policyDecider
	// findBinding returns the binding of a template, or nil if it does not exist.
	findBinding func(context.Context, templateRef) (binding.Object, error)
	// recordMatch records, in metrics, how long the search for the policy of a template took. began
	// is the start of the search.
	recordMatch func(began time.Time)
}

// claim returns the claim of the policy that will claim an object which is about to be created. It
// returns false if the policies alone do not determine the claim: the policy waits for overrides or
// for the next change of the object, the binding that the object needs already exists, or the
// object already has a claim. The reconcile of the template handles these cases.
func (l *claimLookup) claim(ctx context.Context, kind schema.GroupVersionKind, object metav1.Object) (policy.Claim, bool) {
	r := refOf(kind, object)
	if r.Key.Name == "" || !l.isTemplate(r) {
		return policy.Claim{}, false
	}
	began := time.Now()
	template := r.stub(object.GetLabels())
	template.SetAnnotations(object.GetAnnotations())
	if _, claimed := policy.ClaimedBy(template); claimed {
		return policy.Claim{}, false
	}
	decision, ok := l.policies.decide(template).(policy.ApplyPolicy)
	if !ok || policy.IsLazy(decision.Policy) || len(decision.Policy.PropagationSpec().DependentOverrides) > 0 {
		return policy.Claim{}, false
	}
	if bound, err := l.findBinding(ctx, r); err != nil || bound != nil {
		return policy.Claim{}, false
	}
	l.recordMatch(began)
	return policy.ClaimOf(decision.Policy), true
}
