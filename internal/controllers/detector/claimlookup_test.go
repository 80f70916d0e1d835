package detector

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/policy"
)

func TestClaimLookupBeforeCreate(t *testing.T) {
	changed := func(change func(*policyv1alpha1.PropagationPolicy)) *policyv1alpha1.PropagationPolicy {
		p := propagationPolicy("all")
		change(p)
		return p
	}
	held := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	tests := map[string]struct {
		existing []client.Object
		kind     schema.GroupVersionKind
		change   func(*unstructured.Unstructured)
		want     string
	}{
		"a policy selects it":                      {existing: []client.Object{propagationPolicy("all")}, want: "id-all"},
		"a cluster policy selects it":              {existing: []client.Object{clusterPropagationPolicy("base")}, want: "id-base"},
		"a policy of its namespace has precedence": {existing: []client.Object{propagationPolicy("all"), clusterPropagationPolicy("base")}, want: "id-all"},
		"no policy selects it":                     {},
		"its kind is not watched":                  {existing: []client.Object{propagationPolicy("all")}, kind: schema.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}},
		"the object has no name yet": {
			existing: []client.Object{propagationPolicy("all")},
			change:   func(object *unstructured.Unstructured) { object.SetName(""); object.SetGenerateName("web-") },
		},
		"the object has a claim already": {
			existing: []client.Object{propagationPolicy("all")},
			change: func(object *unstructured.Unstructured) {
				policy.ClaimOf(clusterPropagationPolicy("base")).Apply(object)
			},
		},
		"the policy waits for the next change of its templates": {existing: []client.Object{changed(func(p *policyv1alpha1.PropagationPolicy) {
			p.Spec.ActivationPreference = policyv1alpha1.LazyActivation
		})}},
		"the policy waits for overrides": {existing: []client.Object{changed(func(p *policyv1alpha1.PropagationPolicy) {
			p.Spec.DependentOverrides = []string{"paint"}
		})}},
		"the policy has no permanent id": {existing: []client.Object{changed(func(p *policyv1alpha1.PropagationPolicy) { p.Labels = nil })}},
		"a binding of its name exists":   {existing: []client.Object{propagationPolicy("all"), held}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, test.existing...)
			object, kind := deployment(2), test.kind
			if test.change != nil {
				test.change(object)
			}
			if kind.Empty() {
				kind = deployments
			}
			claim, ok := h.lookUpClaim(t.Context(), kind, object)
			if claim.ID != test.want || ok != (test.want != "") {
				t.Errorf("claim %q, %t, want %q", claim.ID, ok, test.want)
			}
		})
	}
}
