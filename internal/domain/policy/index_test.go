package policy

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func requiring(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func expressing(requirements ...metav1.LabelSelectorRequirement) policyv1alpha1.ResourceSelector {
	s := allDeployments
	s.LabelSelector = &metav1.LabelSelector{MatchExpressions: requirements}
	return s
}

func TestWhereLabelSelectorsAreFiled(t *testing.T) {
	const in, notIn, exists, absent = metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist
	tests := map[string]struct {
		requirements []metav1.LabelSelectorRequirement
		want         []demand
		checked      bool
	}{
		"none is filed with those that take all":       {want: []demand{{}}},
		"one value needs no further look":              {requirements: []metav1.LabelSelectorRequirement{requiring("app", in, "web")}, want: []demand{{key: "app", value: "web"}}},
		"several values are filed under each":          {requirements: []metav1.LabelSelectorRequirement{requiring("app", in, "a", "b")}, want: []demand{{key: "app", value: "a"}, {key: "app", value: "b"}}},
		"a label of any value":                         {requirements: []metav1.LabelSelectorRequirement{requiring("app", exists)}, want: []demand{{key: "app", any: true}}},
		"what a template without labels meets":         {requirements: []metav1.LabelSelectorRequirement{requiring("app", notIn, "web")}, want: []demand{{}}, checked: true},
		"the absence of a label":                       {requirements: []metav1.LabelSelectorRequirement{requiring("app", absent)}, want: []demand{{}}, checked: true},
		"the fewest values are preferred":              {requirements: []metav1.LabelSelectorRequirement{requiring("a", in, "1", "2"), requiring("b", in, "1")}, want: []demand{{key: "b", value: "1"}}, checked: true},
		"a value is preferred to any":                  {requirements: []metav1.LabelSelectorRequirement{requiring("a", exists), requiring("b", in, "1", "2")}, want: []demand{{key: "b", value: "1"}, {key: "b", value: "2"}}, checked: true},
		"a label is preferred to what needs none":      {requirements: []metav1.LabelSelectorRequirement{requiring("a", notIn, "1"), requiring("b", exists)}, want: []demand{{key: "b", any: true}}, checked: true},
		"any does not replace a value that came first": {requirements: []metav1.LabelSelectorRequirement{requiring("a", in, "1", "2"), requiring("b", exists)}, want: []demand{{key: "a", value: "1"}, {key: "a", value: "2"}}, checked: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			compiled, ok := compileSelector(&metav1.LabelSelector{MatchExpressions: test.requirements})
			if !ok {
				t.Fatal("the selector does not compile")
			}
			got, rest := demands(compiled)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(demand{})); diff != "" {
				t.Errorf("filed (-want +got):\n%s", diff)
			}
			if (rest != nil) != test.checked {
				t.Errorf("left to check: %v, want any: %v", rest, test.checked)
			}
		})
	}
}

// The shapes of a large control plane, all of one kind but for the last; none may
// take 1 ms a decision.
func BenchmarkDecide(b *testing.B) {
	const policies, namespaces = 10_000, 100
	byName := func(i int) policyv1alpha1.ResourceSelector {
		s := namedWeb
		s.Name = fmt.Sprintf("web-%d", i)
		return s
	}
	byLabel := func(i int) policyv1alpha1.ResourceSelector {
		return labelled(map[string]string{"app": fmt.Sprintf("web-%d", i)})
	}
	byTwoLabels := func(i int) policyv1alpha1.ResourceSelector {
		return labelled(map[string]string{"app": fmt.Sprintf("web-%d", i), "tier": "1"})
	}
	byValues := func(i int) policyv1alpha1.ResourceSelector {
		return expressing(requiring("app", metav1.LabelSelectorOpIn, fmt.Sprintf("a-%d", i), fmt.Sprintf("b-%d", i)))
	}
	byAbsence := func(i int) policyv1alpha1.ResourceSelector {
		return expressing(requiring("tier", metav1.LabelSelectorOpNotIn, "1", fmt.Sprintf("t-%d", i)))
	}
	all := func(int) policyv1alpha1.ResourceSelector { return allDeployments }
	ofOtherKinds := func(i int) policyv1alpha1.ResourceSelector {
		s := otherKind
		s.Kind = fmt.Sprintf("Kind%d", i%50)
		return s
	}
	mix := []func(int) policyv1alpha1.ResourceSelector{byName, byName, byLabel, byTwoLabels, byValues, all, ofOtherKinds}
	cluster := func(int) string { return "" }
	spread := func(i int) string {
		if i%4 == 0 {
			return ""
		}
		return fmt.Sprintf("shop-%d", i%namespaces)
	}
	local := func(int) string { return "shop-1" }

	shapes := map[string]struct {
		selector  func(int) policyv1alpha1.ResourceSelector
		namespace func(int) string
	}{
		"by name":                      {byName, cluster},
		"by one label":                 {byLabel, cluster},
		"by two labels":                {byTwoLabels, cluster},
		"by one of two values":         {byValues, cluster},
		"by a value that must not be":  {byAbsence, cluster},
		"all match":                    {all, cluster},
		"of other kinds":               {ofOtherKinds, cluster},
		"a mix over 100 namespaces":    {func(i int) policyv1alpha1.ResourceSelector { return mix[i%len(mix)](i) }, spread},
		"a mix in one namespace":       {func(i int) policyv1alpha1.ResourceSelector { return mix[i%len(mix)](i) }, local},
		"by labels, one namespace":     {byLabel, local},
		"by two labels, one namespace": {byTwoLabels, local},
	}
	for name, shape := range shapes {
		b.Run(name, func(b *testing.B) {
			index := NewIndex()
			for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(policies) {
				index.Put(policyOf(shape.namespace(i), fmt.Sprintf("p%d", i), selecting(shape.selector(i))))
			}
			template := deployment("shop-1", "web-77", map[string]string{"app": "web-77", "tier": "1", "team": "blue", "version": "v7"})
			b.ReportAllocs()
			for b.Loop() {
				Decide(template, index)
			}
		})
	}
}
