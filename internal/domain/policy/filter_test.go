package policy

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func TestFiltersOfPolicy(t *testing.T) {
	deployments := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	selector := func(namespace, name string) policyv1alpha1.ResourceSelector {
		return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name}
	}
	spec := policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{
		selector("", "web"), selector("shop", ""), selector("blog", ""),
	}}
	tests := map[string]struct {
		of   Object
		want []Filter
	}{
		"a PropagationPolicy selects in its namespace only": {
			&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: spec},
			[]Filter{{Kind: deployments, Namespace: "shop", Name: "web"}, {Kind: deployments, Namespace: "shop"}},
		},
		"a ClusterPropagationPolicy selects in all namespaces": {
			&policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec},
			[]Filter{{Kind: deployments, Name: "web"}, {Kind: deployments, Namespace: "shop"}, {Kind: deployments, Namespace: "blog"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, FiltersOf(tc.of)); diff != "" {
				t.Errorf("filters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFiltersByLabels(t *testing.T) {
	selecting := func(of *metav1.LabelSelector, name string) policyv1alpha1.ResourceSelector {
		return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: name, LabelSelector: of}
	}
	front := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near"}}}
	p := &policyv1alpha1.ClusterPropagationPolicy{Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{
		selecting(front, ""), selecting(broken, ""), selecting(front, "web"), selecting(&metav1.LabelSelector{}, ""),
	}}}
	var got []string
	for _, filter := range FiltersOf(p) {
		got = append(got, fmt.Sprintf("%q %v", filter.Name, filter.Labels))
	}
	if diff := cmp.Diff([]string{`"" tier=front`, `"web" <nil>`, `"" `}, got); diff != "" {
		t.Errorf("filters (-want +got):\n%s", diff)
	}
}
