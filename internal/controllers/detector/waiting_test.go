package detector

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

var (
	deployments  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	configMaps   = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	clusterRoles = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
)

func refNamed(kind schema.GroupVersionKind, namespace, name string) templateRef {
	return templateRef{kind: kind, key: types.NamespacedName{Namespace: namespace, Name: name}}
}

func sortedNames(all []templateRef) []string {
	var texts []string
	for _, r := range all {
		texts = append(texts, r.String())
	}
	slices.Sort(texts)
	return texts
}

func TestWaitingTemplatesMatchingFilter(t *testing.T) {
	w := newWaitingTemplates()
	for _, r := range []templateRef{
		refNamed(deployments, "shop", "web"), refNamed(deployments, "shop", "db"), refNamed(deployments, "blog", "web"),
		refNamed(configMaps, "shop", "web"), refNamed(clusterRoles, "", "admin"),
	} {
		w.add(r, map[string]string{"name": r.key.Name})
	}
	called := func(name string) labels.Selector { return labels.SelectorFromSet(labels.Set{"name": name}) }
	tests := map[string]struct {
		of   templateFilter
		want []string
	}{
		"all of a kind":                     {templateFilter{kind: deployments}, []string{"Deployment blog/web", "Deployment shop/db", "Deployment shop/web"}},
		"those of one namespace":            {templateFilter{kind: deployments, namespace: "shop"}, []string{"Deployment shop/db", "Deployment shop/web"}},
		"one by name":                       {templateFilter{kind: deployments, namespace: "shop", name: "web"}, []string{"Deployment shop/web"}},
		"one name in all namespaces":        {templateFilter{kind: deployments, name: "web"}, []string{"Deployment blog/web", "Deployment shop/web"}},
		"those with a label":                {templateFilter{kind: deployments, labels: called("web")}, []string{"Deployment blog/web", "Deployment shop/web"}},
		"those of a namespace with a label": {templateFilter{kind: deployments, namespace: "shop", labels: called("web")}, []string{"Deployment shop/web"}},
		"none of those without the label":   {templateFilter{kind: deployments, labels: called("cache")}, nil},
		"cluster-scoped ones":               {templateFilter{kind: clusterRoles}, []string{"ClusterRole /admin"}},
		"none of a namespace that has none": {templateFilter{kind: configMaps, namespace: "blog"}, nil},
		"none of a kind that has none":      {templateFilter{kind: schema.GroupVersionKind{Kind: "Job"}}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, sortedNames(w.matching(tc.of))); diff != "" {
				t.Errorf("matches (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaitingTemplatesAddAndRemove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, model := newWaitingTemplates(), sets.New[templateRef]()
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			r := refNamed(
				rapid.SampledFrom([]schema.GroupVersionKind{deployments, configMaps}).Draw(t, "kind"),
				rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
				rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"))
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				w.deleteKind(r.kind)
				for held := range model {
					if held.kind == r.kind {
						model.Delete(held)
					}
				}
			case 1, 2:
				w.remove(r)
				model.Delete(r)
			default:
				w.add(r, nil)
				model.Insert(r)
			}
		}
		held := append(w.matching(templateFilter{kind: deployments}), w.matching(templateFilter{kind: configMaps})...)
		if diff := cmp.Diff(sortedNames(model.UnsortedList()), sortedNames(held)); diff != "" {
			t.Fatalf("waiting (-want +got):\n%s", diff)
		}
		if model.Len() == 0 && len(w.byKind) != 0 {
			t.Fatalf("no template waits, but %v is held", w.byKind)
		}
	})
}

func TestFiltersOfPolicy(t *testing.T) {
	selector := func(namespace, name string) policyv1alpha1.ResourceSelector {
		return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name}
	}
	spec := policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{
		selector("", "web"), selector("shop", ""), selector("blog", ""),
	}}
	tests := map[string]struct {
		of   policy.Object
		want []templateFilter
	}{
		"a PropagationPolicy selects in its namespace only": {
			&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: spec},
			[]templateFilter{{kind: deployments, namespace: "shop", name: "web"}, {kind: deployments, namespace: "shop"}},
		},
		"a ClusterPropagationPolicy selects in all namespaces": {
			&policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec},
			[]templateFilter{{kind: deployments, name: "web"}, {kind: deployments, namespace: "shop"}, {kind: deployments, namespace: "blog"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, filtersOf(tc.of), cmp.AllowUnexported(templateFilter{})); diff != "" {
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
	for _, r := range filtersOf(p) {
		got = append(got, fmt.Sprintf("%q %v", r.name, r.labels))
	}
	if diff := cmp.Diff([]string{`"" tier=front`, `"web" <nil>`, `"" `}, got); diff != "" {
		t.Errorf("filters (-want +got):\n%s", diff)
	}
}

func TestClaimIndexFollowsTemplates(t *testing.T) {
	claimedBy := func(id string) metav1.Object {
		object := newObject(deployments)
		policy.Claim{Namespace: "shop", Name: "p", ID: id}.Apply(object)
		return object
	}
	c := newClaimIndex()
	web, db := refNamed(deployments, "shop", "web"), refNamed(deployments, "shop", "db")
	c.update(web, claimedBy("one"))
	c.update(db, claimedBy("one"))
	c.update(db, claimedBy("two"))
	if diff := cmp.Diff([]string{"Deployment shop/web"}, sortedNames(c.templatesOf("one"))); diff != "" {
		t.Errorf("after another policy claimed a template (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Deployment shop/db"}, sortedNames(c.templatesOf("two"))); diff != "" {
		t.Errorf("the other policy (-want +got):\n%s", diff)
	}
	c.update(web, newObject(deployments))
	c.delete(db)
	if len(c.byID) != 0 || len(c.byTemplate) != 0 {
		t.Errorf("still holding %v and %v of released and deleted templates", c.byID, c.byTemplate)
	}
	c.update(web, claimedBy("one"))
	c.deleteKind(deployments)
	if got := c.templatesOf("one"); len(got) != 0 {
		t.Errorf("still holding %v of a removed kind", got)
	}
}

func TestBlockedRequestsAreTakenOnce(t *testing.T) {
	b := newBlockedRequests()
	override := types.NamespacedName{Namespace: "shop", Name: "o"}
	first := templateRequest{refNamed(deployments, "shop", "web"), policy.TemplateChanged}
	second := templateRequest{refNamed(deployments, "shop", "web"), policy.PolicyChanged}
	b.add(override, first)
	b.add(override, first)
	b.add(override, second)
	if got := b.take(types.NamespacedName{Name: "o"}); len(got) != 0 {
		t.Errorf("a ClusterOverridePolicy of that name returns %v", got)
	}
	if got := sets.New(b.take(override)...); !got.Equal(sets.New(first, second)) {
		t.Errorf("took %v", got)
	}
	if got := b.take(override); len(got) != 0 {
		t.Errorf("took %v again", got)
	}
	b.add(override, first)
	b.add(override, second)
	b.add(override, templateRequest{refNamed(deployments, "shop", "db"), policy.TemplateChanged})
	b.deleteTemplate(first.templateRef)
	if diff := cmp.Diff([]templateRequest{{refNamed(deployments, "shop", "db"), policy.TemplateChanged}}, b.take(override), cmp.AllowUnexported(templateRequest{}, templateRef{})); diff != "" {
		t.Errorf("after a template was removed (-want +got):\n%s", diff)
	}
}

func TestTemplateRefString(t *testing.T) {
	if got := refNamed(deployments, "shop", "web").String(); !strings.Contains(got, "Deployment shop/web") {
		t.Errorf("got %q", got)
	}
}
