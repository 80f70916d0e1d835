package claims

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
)

// Lookup finds the claim for an object before the object is created.
type Lookup struct {
	// IsTemplate reports whether an object can be a template.
	IsTemplate func(templates.Ref) bool
	Policies   Decider
	// FindBinding returns the binding of a template, or nil if it does not exist.
	FindBinding func(context.Context, templates.Ref) (binding.Object, error)
	// RecordMatch records, in metrics, how long the search for the policy of a template took. began
	// is the start of the search.
	RecordMatch func(began time.Time)
}

// Claim returns the claim of the policy that will claim an object which is about to be created. It
// returns false if the policies alone do not determine the claim: the policy waits for overrides or
// for the next change of the object, the binding that the object needs already exists, or the
// object already has a claim. The reconcile of the template handles these cases.
func (l *Lookup) Claim(ctx context.Context, kind schema.GroupVersionKind, object metav1.Object) (policy.Claim, bool) {
	r := templates.RefOf(kind, object)
	if r.Key.Name == "" || !l.IsTemplate(r) {
		return policy.Claim{}, false
	}
	began := time.Now()
	template := r.Stub(object.GetLabels())
	template.SetAnnotations(object.GetAnnotations())
	if _, claimed := policy.ClaimedBy(template); claimed {
		return policy.Claim{}, false
	}
	decision, ok := l.Policies.Decide(template).(policy.ApplyPolicy)
	if !ok || policy.IsLazy(decision.Policy) || len(decision.Policy.PropagationSpec().DependentOverrides) > 0 {
		return policy.Claim{}, false
	}
	if bound, err := l.FindBinding(ctx, r); err != nil || bound != nil {
		return policy.Claim{}, false
	}
	l.RecordMatch(began)
	return policy.ClaimOf(decision.Policy), true
}
