package policy

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func TestImplicitPriority(t *testing.T) {
	wrongNameRightLabels := webByName
	wrongNameRightLabels.Name, wrongNameRightLabels.LabelSelector = "other", labelledWeb.LabelSelector
	rightNameWrongLabels := webByName
	rightNameWrongLabels.LabelSelector = labelledOther.LabelSelector
	tests := map[string]struct {
		selectors []policyv1alpha1.ResourceSelector
		want      MatchPriority
	}{
		"no selector selects nothing":                         {want: MatchNone},
		"the kind alone matches all objects":                  {selectors: []policyv1alpha1.ResourceSelector{allDeployments}, want: MatchAll},
		"another apiVersion of the kind does not match":       {selectors: []policyv1alpha1.ResourceSelector{otherAPIVersion}, want: MatchNone},
		"another kind does not match":                         {selectors: []policyv1alpha1.ResourceSelector{otherKind}, want: MatchNone},
		"the namespace has to be equal":                       {selectors: []policyv1alpha1.ResourceSelector{inNamespace(allDeployments, "other")}, want: MatchNone},
		"an equal namespace matches":                          {selectors: []policyv1alpha1.ResourceSelector{inNamespace(allDeployments, "shop")}, want: MatchAll},
		"a name is the most precise":                          {selectors: []policyv1alpha1.ResourceSelector{webByName}, want: MatchName},
		"the label selector is ignored if a name is set":      {selectors: []policyv1alpha1.ResourceSelector{rightNameWrongLabels}, want: MatchName},
		"matching labels do not replace a matching name":      {selectors: []policyv1alpha1.ResourceSelector{wrongNameRightLabels}, want: MatchNone},
		"labels that match":                                   {selectors: []policyv1alpha1.ResourceSelector{labelledWeb}, want: MatchLabel},
		"labels that do not match":                            {selectors: []policyv1alpha1.ResourceSelector{labelledOther}, want: MatchNone},
		"an empty label selector matches as a label selector": {selectors: []policyv1alpha1.ResourceSelector{anyLabels}, want: MatchLabel},
		"an invalid label selector does not match":            {selectors: []policyv1alpha1.ResourceSelector{brokenSelector}, want: MatchNone},
		"the highest of the selectors counts":                 {selectors: []policyv1alpha1.ResourceSelector{allDeployments, webByName, labelledWeb}, want: MatchName},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := newDeployment("shop", "web", map[string]string{"app": "web"})
			if got := ImplicitPriority(test.selectors, template); got != test.want {
				t.Errorf("ImplicitPriority = %v, want %v", got, test.want)
			}
		})
	}
}

func TestBest(t *testing.T) {
	tests := map[string]struct {
		policies []Object
		want     string
	}{
		"none": {},
		"the higher explicit priority wins": {
			policies: []Object{
				newPolicy("shop", "b", withSelectors(webByName)),
				newPolicy("shop", "a", withSelectors(allDeployments)),
				newPolicy("shop", "z", withPriority(1), withSelectors(allDeployments)),
			},
			want: "shop/z",
		},
		"then the higher implicit priority": {
			policies: []Object{
				newPolicy("shop", "b", withSelectors(webByName)),
				newPolicy("shop", "a", withSelectors(allDeployments)),
			},
			want: "shop/b",
		},
		"then the smaller name": {
			policies: []Object{newPolicy("shop", "b", withSelectors(allDeployments)), newPolicy("shop", "B", withSelectors(allDeployments))},
			want:     "shop/B",
		},
		"a negative priority is lower than an unset priority": {
			policies: []Object{newPolicy("shop", "a", withPriority(-1), withSelectors(webByName)), newPolicy("shop", "b", withSelectors(allDeployments))},
			want:     "shop/b",
		},
		"a PropagationPolicy beats a ClusterPropagationPolicy of any priority": {
			policies: []Object{newPolicy("", "a", withPriority(100), withSelectors(webByName)), newPolicy("shop", "b", withPriority(-5), withSelectors(allDeployments))},
			want:     "shop/b",
		},
		"an empty label selector precedes no label selector": {
			policies: []Object{newPolicy("shop", "a", withSelectors(allDeployments)), newPolicy("shop", "b", withSelectors(anyLabels))},
			want:     "shop/b",
		},
		"a PropagationPolicy of another namespace is ignored": {
			policies: []Object{newPolicy("other", "a", withSelectors(allDeployments)), newPolicy("", "c", withSelectors(allDeployments))},
			want:     "c",
		},
		"a policy that is being deleted is ignored": {
			policies: []Object{newPolicy("shop", "a", withDeletionTimestamp, withSelectors(webByName)), newPolicy("", "c", withSelectors(allDeployments))},
			want:     "c",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := newDeployment("shop", "web", map[string]string{"app": "web"})
			index := NewIndex()
			for _, p := range test.policies {
				index.Put(p)
			}
			for how, got := range map[string]Object{"Best": Best(template, test.policies), "Index.Best": index.Best(template)} {
				if nameOf(got) != test.want {
					t.Errorf("%s = %q, want %q", how, nameOf(got), test.want)
				}
			}
		})
	}
}

func nameOf(policy Object) string {
	if policy == nil {
		return ""
	}
	return ClaimOf(policy).String()
}

// generatePolicies generates policies that often select the template and often have equal ranks.
func generatePolicies(t *rapid.T) []Object {
	selector := rapid.Custom(func(t *rapid.T) policyv1alpha1.ResourceSelector {
		s := rapid.SampledFrom([]policyv1alpha1.ResourceSelector{
			allDeployments, webByName, anyLabels, labelledWeb, labelledOther, brokenSelector, otherAPIVersion, otherKind,
			selectByLabels(map[string]string{"app": "web", "tier": "1"}),
			{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"1", "2"}},
			}}},
			{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist},
			}}},
			{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "tier", Operator: metav1.LabelSelectorOpExists},
			}}},
			{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "tier", Operator: metav1.LabelSelectorOpExists},
				{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "db"}},
				{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"db"}},
			}}},
		}).Draw(t, "selector")
		return inNamespace(s, rapid.SampledFrom([]string{"", "shop", "other"}).Draw(t, "selector namespace"))
	})
	var policies []Object
	for i := range rapid.IntRange(0, 8).Draw(t, "policies") {
		namespace := rapid.SampledFrom([]string{"", "shop", "other"}).Draw(t, "namespace")
		p := newPolicy(namespace, fmt.Sprintf("p%d", i), withSelectors(rapid.SliceOfN(selector, 0, 3).Draw(t, "selectors")...))
		if rapid.Bool().Draw(t, "has priority") {
			withPriority(rapid.Int32Range(-1, 1).Draw(t, "priority"))(p)
		}
		if rapid.IntRange(0, 5).Draw(t, "terminating") == 0 {
			withDeletionTimestamp(p)
		}
		policies = append(policies, p)
	}
	return policies
}

func TestBestIsIndependentOfOrderAndIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policies := generatePolicies(t)
		template := newDeployment(
			rapid.SampledFrom([]string{"shop", "other", ""}).Draw(t, "template namespace"),
			rapid.SampledFrom([]string{"web", "db"}).Draw(t, "template name"),
			rapid.MapOf(rapid.SampledFrom([]string{"app", "tier"}), rapid.SampledFrom([]string{"web", "1"})).Draw(t, "labels"),
		)
		want := nameOf(Best(template, policies))
		shuffled := rapid.Permutation(policies).Draw(t, "order")
		if got := nameOf(Best(template, shuffled)); got != want {
			t.Fatalf("Best = %q in one order and %q in another", want, got)
		}
		index := NewIndex()
		for _, p := range shuffled {
			index.Put(p)
			index.Put(p)
		}
		if got := nameOf(index.Best(template)); got != want {
			t.Fatalf("Index.Best = %q, Best = %q", got, want)
		}
		for _, p := range policies {
			index.Delete(p.GetNamespace(), p.GetName())
		}
		if index.Len() != 0 || len(index.entries) != 0 || index.Best(template) != nil {
			t.Fatalf("an emptied index holds %d policies, %d keys", index.Len(), len(index.entries))
		}
	})
}

func TestIndexReplacesPolicy(t *testing.T) {
	index := NewIndex()
	index.Put(newPolicy("shop", "a", withSelectors(webByName)))
	index.Put(newPolicy("shop", "a", withSelectors(labelledOther)))
	template := newDeployment("shop", "web", nil)
	if got := index.Best(template); got != nil {
		t.Errorf("the selectors of a replaced policy still match: %q", nameOf(got))
	}
	if index.Get("shop", "a") == nil || index.Get("", "a") != nil || index.Len() != 1 {
		t.Error("Get does not find the policy under its namespace and name alone")
	}
}
