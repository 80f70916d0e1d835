package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

const (
	ppID   = "propagationpolicy.karmada.io/permanent-id"
	ppNS   = "propagationpolicy.karmada.io/namespace"
	ppName = "propagationpolicy.karmada.io/name"
	cpID   = "clusterpropagationpolicy.karmada.io/permanent-id"
	cpName = "clusterpropagationpolicy.karmada.io/name"
)

type marks struct{ Labels, Annotations map[string]string }

var (
	ppMarks = marks{map[string]string{ppID: "id-web", "app": "web"}, map[string]string{ppNS: "shop", ppName: "web"}}
	cpMarks = marks{map[string]string{cpID: "id-all", "app": "web"}, map[string]string{cpName: "all"}}
	free    = marks{Labels: map[string]string{"app": "web"}}
)

func TestClaimApplyAndRemove(t *testing.T) {
	pp, cp := ClaimOf(policyOf("shop", "web")), ClaimOf(policyOf("", "all"))
	stale := pp
	stale.ID = "another"
	tests := map[string]struct {
		before  marks
		do      func(Claim, *policyv1alpha1.PropagationPolicy) bool
		claim   Claim
		want    marks
		changed bool
	}{
		"a PropagationPolicy claims":                    {before: free, do: applyClaim, claim: pp, want: ppMarks, changed: true},
		"a ClusterPropagationPolicy claims":             {before: free, do: applyClaim, claim: cp, want: cpMarks, changed: true},
		"a claim that is there changes nothing":         {before: ppMarks, do: applyClaim, claim: pp, want: ppMarks},
		"a new id replaces the old one":                 {before: marks{map[string]string{ppID: "old", "app": "web"}, ppMarks.Annotations}, do: applyClaim, claim: pp, want: ppMarks, changed: true},
		"a PropagationPolicy takes a cluster claim off": {before: cpMarks, do: applyClaim, claim: pp, want: ppMarks, changed: true},
		"a lost annotation is repaired":                 {before: marks{ppMarks.Labels, map[string]string{ppNS: "shop"}}, do: applyClaim, claim: pp, want: ppMarks, changed: true},
		"a claim is removed":                            {before: ppMarks, do: removeClaim, claim: pp, want: free, changed: true},
		"a cluster claim is removed":                    {before: cpMarks, do: removeClaim, claim: cp, want: free, changed: true},
		"a recorded state goes with the claim":          {before: marks{ppMarks.Labels, map[string]string{ppNS: "shop", ppName: "web", UserStateAnnotation: "1"}}, do: removeClaim, claim: pp, want: free, changed: true},
		"a claim with another id is left alone":         {before: ppMarks, do: removeClaim, claim: stale, want: ppMarks},
		"the claim of the other kind is left alone":     {before: ppMarks, do: removeClaim, claim: cp, want: ppMarks},
		"a claim without id removes nothing":            {before: free, do: removeClaim, claim: Claim{Name: "all"}, want: free},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := &policyv1alpha1.PropagationPolicy{}
			object.Labels, object.Annotations = test.before.Labels, test.before.Annotations
			object = object.DeepCopy()
			if changed := test.do(test.claim, object); changed != test.changed {
				t.Errorf("changed = %v, want %v", changed, test.changed)
			}
			if diff := cmp.Diff(test.want, marks{object.Labels, object.Annotations}); diff != "" {
				t.Errorf("marks differ (-want +got):\n%s", diff)
			}
		})
	}
}

func applyClaim(c Claim, object *policyv1alpha1.PropagationPolicy) bool  { return c.Apply(object) }
func removeClaim(c Claim, object *policyv1alpha1.PropagationPolicy) bool { return c.Remove(object) }

func TestClaimedBy(t *testing.T) {
	without := func(m marks, key string) marks {
		object := deployment("shop", "web", m.Labels)
		object.SetAnnotations(m.Annotations)
		labels, annotations := object.GetLabels(), object.GetAnnotations()
		delete(labels, key)
		delete(annotations, key)
		return marks{labels, annotations}
	}
	both := marks{map[string]string{ppID: "id-web", cpID: "id-all"}, map[string]string{ppNS: "shop", ppName: "web", cpName: "all"}}
	tests := map[string]struct {
		marks marks
		want  Claim
	}{
		"all keys of a PropagationPolicy":           {ppMarks, Claim{Namespace: "shop", Name: "web", ID: "id-web"}},
		"all keys of a ClusterPropagationPolicy":    {cpMarks, Claim{Name: "all", ID: "id-all"}},
		"the PropagationPolicy goes first":          {both, Claim{Namespace: "shop", Name: "web", ID: "id-web"}},
		"an incomplete one gives way to the other":  {without(both, ppNS), Claim{Name: "all", ID: "id-all"}},
		"a missing id is no claim":                  {without(ppMarks, ppID), Claim{}},
		"a missing name is no claim":                {without(ppMarks, ppName), Claim{}},
		"a missing namespace is no claim":           {without(ppMarks, ppNS), Claim{}},
		"a missing cluster policy name is no claim": {without(cpMarks, cpName), Claim{}},
		"nothing is no claim":                       {free, Claim{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := deployment("shop", "web", test.marks.Labels)
			object.SetAnnotations(test.marks.Annotations)
			got, ok := ClaimedBy(object)
			if got != test.want || ok != (test.want != Claim{}) {
				t.Errorf("ClaimedBy = %+v, %v; want %+v", got, ok, test.want)
			}
		})
	}
}

func TestReleased(t *testing.T) {
	tests := map[string]struct {
		labels, annotations map[string]string
		requiredBy          []workv1alpha2.BindingSnapshot
		want                bool
	}{
		"a policy holds it": {
			labels: ppMarks.Labels, annotations: map[string]string{ppNS: "shop", ppName: "web", TemplateStateAnnotation: "1"},
		},
		"a ClusterPropagationPolicy holds it": {
			labels: cpMarks.Labels, annotations: map[string]string{cpName: "all", TemplateStateAnnotation: "1"},
		},
		"its policy has let go": {annotations: map[string]string{TemplateStateAnnotation: "1"}, want: true},
		"half a claim is none":  {labels: ppMarks.Labels, annotations: map[string]string{TemplateStateAnnotation: "1"}, want: true},
		"no policy made it":     {},
		"another binding needs it all the same": {
			annotations: map[string]string{TemplateStateAnnotation: "1"},
			requiredBy:  []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "web-deployment"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bound := &workv1alpha2.ResourceBinding{}
			bound.Labels, bound.Annotations, bound.Spec.RequiredBy = tc.labels, tc.annotations, tc.requiredBy
			if got := Released(bound); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
