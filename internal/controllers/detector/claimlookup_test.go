package detector

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
)

// newLookup returns a lookup for Deployments with a catalog of policies.
func newLookup(isBound bool, policies ...policy.Object) *claimLookup {
	decider := newPolicyCatalog()
	for _, p := range policies {
		decider.put(p)
	}
	return &claimLookup{
		isTemplate: func(r templateRef) bool { return r.Kind == deployments },
		policies:   decider,
		findBinding: func(context.Context, templateRef) (binding.Object, error) {
			if !isBound {
				return nil, nil
			}
			return &workv1alpha2.ResourceBinding{}, nil
		},
		recordMatch: func(time.Time) {},
	}
}

func TestClaimLookupBeforeCreate(t *testing.T) {
	changed := func(change func(*policyv1alpha1.PropagationPolicy)) *policyv1alpha1.PropagationPolicy {
		p := newPropagationPolicy("all")
		change(p)
		return p
	}
	tests := map[string]struct {
		existing []policy.Object
		isBound  bool
		kind     schema.GroupVersionKind
		change   func(*unstructured.Unstructured)
		want     string
	}{
		"a policy selects it":                      {existing: []policy.Object{newPropagationPolicy("all")}, want: "id-all"},
		"a cluster policy selects it":              {existing: []policy.Object{newClusterPropagationPolicy("base")}, want: "id-base"},
		"a policy of its namespace has precedence": {existing: []policy.Object{newPropagationPolicy("all"), newClusterPropagationPolicy("base")}, want: "id-all"},
		"no policy selects it":                     {},
		"its kind is not watched":                  {existing: []policy.Object{newPropagationPolicy("all")}, kind: schema.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}},
		"the object has no name yet": {
			existing: []policy.Object{newPropagationPolicy("all")},
			change:   func(object *unstructured.Unstructured) { object.SetName(""); object.SetGenerateName("web-") },
		},
		"the object has a claim already": {
			existing: []policy.Object{newPropagationPolicy("all")},
			change: func(object *unstructured.Unstructured) {
				policy.ClaimOf(newClusterPropagationPolicy("base")).Apply(object)
			},
		},
		"the policy waits for the next change of its templates": {existing: []policy.Object{changed(func(p *policyv1alpha1.PropagationPolicy) {
			p.Spec.ActivationPreference = policyv1alpha1.LazyActivation
		})}},
		"the policy waits for overrides": {existing: []policy.Object{changed(func(p *policyv1alpha1.PropagationPolicy) {
			p.Spec.DependentOverrides = []string{"paint"}
		})}},
		"the policy has no permanent id": {existing: []policy.Object{changed(func(p *policyv1alpha1.PropagationPolicy) { p.Labels = nil })}},
		"a binding of its name exists":   {existing: []policy.Object{newPropagationPolicy("all")}, isBound: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLookup(test.isBound, test.existing...)
			object, kind := webRef.stub(nil), test.kind
			if test.change != nil {
				test.change(object)
			}
			if kind.Empty() {
				kind = deployments
			}
			claim, ok := l.claim(t.Context(), kind, object)
			if claim.ID != test.want || ok != (test.want != "") {
				t.Errorf("claim %q, %t, want %q", claim.ID, ok, test.want)
			}
		})
	}
}

func TestClaimLookupIsNotCertainWithoutBindings(t *testing.T) {
	l := newLookup(false, newPropagationPolicy("all"))
	l.findBinding = func(context.Context, templateRef) (binding.Object, error) { return nil, errors.New("down") }
	if claim, ok := l.claim(t.Context(), deployments, webRef.stub(nil)); ok {
		t.Errorf("claim %v although the bindings cannot be read", claim)
	}
}
