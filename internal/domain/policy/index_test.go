package policy

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func expression(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func selectorWithExpressions(requirements ...metav1.LabelSelectorRequirement) policyv1alpha1.ResourceSelector {
	s := allDeployments
	s.LabelSelector = &metav1.LabelSelector{MatchExpressions: requirements}
	return s
}

func TestIndexableRequirements(t *testing.T) {
	const in, notIn, exists, absent = metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist
	tests := map[string]struct {
		requirements []metav1.LabelSelectorRequirement
		want         []labelRequirement
		hasRest      bool
	}{
		"an empty selector":      {want: []labelRequirement{{}}},
		"one value":              {requirements: []metav1.LabelSelectorRequirement{expression("app", in, "web")}, want: []labelRequirement{{key: "app", value: "web"}}},
		"several values":         {requirements: []metav1.LabelSelectorRequirement{expression("app", in, "a", "b")}, want: []labelRequirement{{key: "app", value: "a"}, {key: "app", value: "b"}}},
		"a label with any value": {requirements: []metav1.LabelSelectorRequirement{expression("app", exists)}, want: []labelRequirement{{key: "app", anyValue: true}}},
		"not one of some values": {requirements: []metav1.LabelSelectorRequirement{expression("app", notIn, "web")}, want: []labelRequirement{{}}, hasRest: true},
		"the absence of a label": {requirements: []metav1.LabelSelectorRequirement{expression("app", absent)}, want: []labelRequirement{{}}, hasRest: true},
		"the requirement with the fewest values is preferred":           {requirements: []metav1.LabelSelectorRequirement{expression("a", in, "1", "2"), expression("b", in, "1")}, want: []labelRequirement{{key: "b", value: "1"}}, hasRest: true},
		"a value is preferred to any value":                             {requirements: []metav1.LabelSelectorRequirement{expression("a", exists), expression("b", in, "1", "2")}, want: []labelRequirement{{key: "b", value: "1"}, {key: "b", value: "2"}}, hasRest: true},
		"a required label is preferred to an excluded value":            {requirements: []metav1.LabelSelectorRequirement{expression("a", notIn, "1"), expression("b", exists)}, want: []labelRequirement{{key: "b", anyValue: true}}, hasRest: true},
		"any value does not replace an earlier requirement with values": {requirements: []metav1.LabelSelectorRequirement{expression("a", in, "1", "2"), expression("b", exists)}, want: []labelRequirement{{key: "a", value: "1"}, {key: "a", value: "2"}}, hasRest: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			compiled, ok := compileSelector(&metav1.LabelSelector{MatchExpressions: test.requirements})
			if !ok {
				t.Fatal("the selector does not compile")
			}
			got, rest := indexableRequirements(compiled)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(labelRequirement{})); diff != "" {
				t.Errorf("requirements (-want +got):\n%s", diff)
			}
			if (rest != nil) != test.hasRest {
				t.Errorf("remaining selector: %v, want one: %v", rest, test.hasRest)
			}
		})
	}
}

// BenchmarkDecide measures decisions with the policies of a large control plane, most of them for
// one kind. Every decision must take less than 1 ms.
func BenchmarkDecide(b *testing.B) {
	const policies, namespaces = 10_000, 100
	byName := func(i int) policyv1alpha1.ResourceSelector {
		s := webByName
		s.Name = fmt.Sprintf("web-%d", i)
		return s
	}
	byLabel := func(i int) policyv1alpha1.ResourceSelector {
		return selectByLabels(map[string]string{"app": fmt.Sprintf("web-%d", i)})
	}
	byTwoLabels := func(i int) policyv1alpha1.ResourceSelector {
		return selectByLabels(map[string]string{"app": fmt.Sprintf("web-%d", i), "tier": "1"})
	}
	byValues := func(i int) policyv1alpha1.ResourceSelector {
		return selectorWithExpressions(expression("app", metav1.LabelSelectorOpIn, fmt.Sprintf("a-%d", i), fmt.Sprintf("b-%d", i)))
	}
	byAbsence := func(i int) policyv1alpha1.ResourceSelector {
		return selectorWithExpressions(expression("tier", metav1.LabelSelectorOpNotIn, "1", fmt.Sprintf("t-%d", i)))
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
		"by an excluded value":         {byAbsence, cluster},
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
				index.Put(newPolicy(shape.namespace(i), fmt.Sprintf("p%d", i), withSelectors(shape.selector(i))))
			}
			template := newDeployment("shop-1", "web-77", map[string]string{"app": "web-77", "tier": "1", "team": "blue", "version": "v7"})
			b.ReportAllocs()
			for b.Loop() {
				Decide(template, index)
			}
		})
	}
}
