package policy

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

type claimMetadata struct{ Labels, Annotations map[string]string }

var (
	propagationClaim = claimMetadata{map[string]string{ppID: "id-web", "app": "web"}, map[string]string{ppNS: "shop", ppName: "web"}}
	clusterClaim     = claimMetadata{map[string]string{cpID: "id-all", "app": "web"}, map[string]string{cpName: "all"}}
	unclaimed        = claimMetadata{Labels: map[string]string{"app": "web"}}
)

func TestClaimApplyAndRemove(t *testing.T) {
	pp, cp := ClaimOf(newPolicy("shop", "web")), ClaimOf(newPolicy("", "all"))
	stale := pp
	stale.ID = "another"
	tests := map[string]struct {
		before  claimMetadata
		update  func(Claim, *policyv1alpha1.PropagationPolicy) bool
		claim   Claim
		want    claimMetadata
		changed bool
	}{
		"a PropagationPolicy claims":                  {before: unclaimed, update: applyClaim, claim: pp, want: propagationClaim, changed: true},
		"a ClusterPropagationPolicy claims":           {before: unclaimed, update: applyClaim, claim: cp, want: clusterClaim, changed: true},
		"an existing claim is not changed":            {before: propagationClaim, update: applyClaim, claim: pp, want: propagationClaim},
		"a new id replaces the old one":               {before: claimMetadata{map[string]string{ppID: "old", "app": "web"}, propagationClaim.Annotations}, update: applyClaim, claim: pp, want: propagationClaim, changed: true},
		"a PropagationPolicy removes a cluster claim": {before: clusterClaim, update: applyClaim, claim: pp, want: propagationClaim, changed: true},
		"a lost annotation is repaired":               {before: claimMetadata{propagationClaim.Labels, map[string]string{ppNS: "shop"}}, update: applyClaim, claim: pp, want: propagationClaim, changed: true},
		"a claim is removed":                          {before: propagationClaim, update: removeClaim, claim: pp, want: unclaimed, changed: true},
		"a cluster claim is removed":                  {before: clusterClaim, update: removeClaim, claim: cp, want: unclaimed, changed: true},
		"a recorded state is removed with the claim":  {before: claimMetadata{propagationClaim.Labels, map[string]string{ppNS: "shop", ppName: "web", policyv1alpha1.UserStateAnnotation: "1"}}, update: removeClaim, claim: pp, want: unclaimed, changed: true},
		"a claim with another id is not removed":      {before: propagationClaim, update: removeClaim, claim: stale, want: propagationClaim},
		"the claim of the other kind is not removed":  {before: propagationClaim, update: removeClaim, claim: cp, want: propagationClaim},
		"a claim without id removes nothing":          {before: unclaimed, update: removeClaim, claim: Claim{Name: "all"}, want: unclaimed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := &policyv1alpha1.PropagationPolicy{}
			object.Labels, object.Annotations = test.before.Labels, test.before.Annotations
			object = object.DeepCopy()
			if changed := test.update(test.claim, object); changed != test.changed {
				t.Errorf("changed = %v, want %v", changed, test.changed)
			}
			if diff := cmp.Diff(test.want, claimMetadata{object.Labels, object.Annotations}); diff != "" {
				t.Errorf("labels or annotations differ (-want +got):\n%s", diff)
			}
		})
	}
}

func applyClaim(c Claim, object *policyv1alpha1.PropagationPolicy) bool  { return c.Apply(object) }
func removeClaim(c Claim, object *policyv1alpha1.PropagationPolicy) bool { return c.Remove(object) }

func TestClaimedBy(t *testing.T) {
	without := func(m claimMetadata, key string) claimMetadata {
		object := newDeployment("shop", "web", m.Labels)
		object.SetAnnotations(m.Annotations)
		labels, annotations := object.GetLabels(), object.GetAnnotations()
		delete(labels, key)
		delete(annotations, key)
		return claimMetadata{labels, annotations}
	}
	both := claimMetadata{map[string]string{ppID: "id-web", cpID: "id-all"}, map[string]string{ppNS: "shop", ppName: "web", cpName: "all"}}
	tests := map[string]struct {
		metadata claimMetadata
		want     Claim
	}{
		"all keys of a PropagationPolicy":           {propagationClaim, Claim{Namespace: "shop", Name: "web", ID: "id-web"}},
		"all keys of a ClusterPropagationPolicy":    {clusterClaim, Claim{Name: "all", ID: "id-all"}},
		"a PropagationPolicy takes precedence":      {both, Claim{Namespace: "shop", Name: "web", ID: "id-web"}},
		"an incomplete claim is ignored":            {without(both, ppNS), Claim{Name: "all", ID: "id-all"}},
		"a missing id is no claim":                  {without(propagationClaim, ppID), Claim{}},
		"a missing name is no claim":                {without(propagationClaim, ppName), Claim{}},
		"a missing namespace is no claim":           {without(propagationClaim, ppNS), Claim{}},
		"a missing cluster policy name is no claim": {without(clusterClaim, cpName), Claim{}},
		"no labels and annotations":                 {unclaimed, Claim{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := newDeployment("shop", "web", test.metadata.Labels)
			object.SetAnnotations(test.metadata.Annotations)
			got, ok := ClaimedBy(object)
			if got != test.want || ok != (test.want != Claim{}) {
				t.Errorf("ClaimedBy = %+v, %v; want %+v", got, ok, test.want)
			}
		})
	}
}

func TestIsReleased(t *testing.T) {
	tests := map[string]struct {
		labels, annotations map[string]string
		requiredBy          []workv1alpha2.BindingSnapshot
		want                bool
	}{
		"claimed by a PropagationPolicy": {
			labels: propagationClaim.Labels, annotations: map[string]string{ppNS: "shop", ppName: "web", policyv1alpha1.TemplateStateAnnotation: "1"},
		},
		"claimed by a ClusterPropagationPolicy": {
			labels: clusterClaim.Labels, annotations: map[string]string{cpName: "all", policyv1alpha1.TemplateStateAnnotation: "1"},
		},
		"released by its policy": {annotations: map[string]string{policyv1alpha1.TemplateStateAnnotation: "1"}, want: true},
		"an incomplete claim":    {labels: propagationClaim.Labels, annotations: map[string]string{policyv1alpha1.TemplateStateAnnotation: "1"}, want: true},
		"not made for a policy":  {},
		"released, but required by another binding": {
			annotations: map[string]string{policyv1alpha1.TemplateStateAnnotation: "1"},
			requiredBy:  []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "web-deployment"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bound := &workv1alpha2.ResourceBinding{}
			bound.Labels, bound.Annotations, bound.Spec.RequiredBy = tc.labels, tc.annotations, tc.requiredBy
			if got := IsReleased(bound); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestLacksTemplateState(t *testing.T) {
	template := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2)}}}
	template.SetResourceVersion("7")
	state, err := RelevantHash(template)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		labels          map[string]string
		state           string
		resourceVersion string
		want            bool
	}{
		"the current state":                      {clusterClaim.Labels, state, "5", false},
		"an earlier state":                       {clusterClaim.Labels, "1", "5", true},
		"made from the version of the template":  {clusterClaim.Labels, "1", "7", false},
		"made by a release that records nothing": {clusterClaim.Labels, "", "5", false},
		"a binding without a policy":             {nil, "1", "5", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bound := &workv1alpha2.ResourceBinding{}
			bound.Labels, bound.Annotations = tc.labels, map[string]string{cpName: "all"}
			if tc.state != "" {
				bound.Annotations[policyv1alpha1.TemplateStateAnnotation] = tc.state
			}
			bound.Spec.Resource.ResourceVersion = tc.resourceVersion
			if got, err := LacksTemplateState(bound, template); err != nil || got != tc.want {
				t.Errorf("got %t, %v", got, err)
			}
		})
	}
}
