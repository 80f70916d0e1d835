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

func named(kind schema.GroupVersionKind, namespace, name string) reference {
	return reference{kind: kind, key: types.NamespacedName{Namespace: namespace, Name: name}}
}

func inOrder(all []reference) []string {
	var texts []string
	for _, r := range all {
		texts = append(texts, r.String())
	}
	slices.Sort(texts)
	return texts
}

func TestWaitingTemplatesWithinReach(t *testing.T) {
	w := newWaiting()
	for _, r := range []reference{
		named(deployments, "shop", "web"), named(deployments, "shop", "db"), named(deployments, "blog", "web"),
		named(configMaps, "shop", "web"), named(clusterRoles, "", "admin"),
	} {
		w.add(r, map[string]string{"name": r.key.Name})
	}
	called := func(name string) labels.Selector { return labels.SelectorFromSet(labels.Set{"name": name}) }
	tests := map[string]struct {
		of   area
		want []string
	}{
		"all of a kind":                     {area{kind: deployments}, []string{"Deployment blog/web", "Deployment shop/db", "Deployment shop/web"}},
		"those of one namespace":            {area{kind: deployments, namespace: "shop"}, []string{"Deployment shop/db", "Deployment shop/web"}},
		"one by name":                       {area{kind: deployments, namespace: "shop", name: "web"}, []string{"Deployment shop/web"}},
		"one name in all namespaces":        {area{kind: deployments, name: "web"}, []string{"Deployment blog/web", "Deployment shop/web"}},
		"those with a label":                {area{kind: deployments, labels: called("web")}, []string{"Deployment blog/web", "Deployment shop/web"}},
		"those of a namespace with a label": {area{kind: deployments, namespace: "shop", labels: called("web")}, []string{"Deployment shop/web"}},
		"none of those without the label":   {area{kind: deployments, labels: called("cache")}, nil},
		"cluster-scoped ones":               {area{kind: clusterRoles}, []string{"ClusterRole /admin"}},
		"none of a namespace that has none": {area{kind: configMaps, namespace: "blog"}, nil},
		"none of a kind that has none":      {area{kind: schema.GroupVersionKind{Kind: "Job"}}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, inOrder(w.within(tc.of))); diff != "" {
				t.Errorf("within reach (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaitingHoldsWhatWasAddedAndNotRemoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, model := newWaiting(), sets.New[reference]()
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			r := named(
				rapid.SampledFrom([]schema.GroupVersionKind{deployments, configMaps}).Draw(t, "kind"),
				rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
				rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"))
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				w.dropKind(r.kind)
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
		held := append(w.within(area{kind: deployments}), w.within(area{kind: configMaps})...)
		if diff := cmp.Diff(inOrder(model.UnsortedList()), inOrder(held)); diff != "" {
			t.Fatalf("waiting (-want +got):\n%s", diff)
		}
		if model.Len() == 0 && len(w.kinds) != 0 {
			t.Fatalf("nothing waits, but %v is kept", w.kinds)
		}
	})
}

func TestReaches(t *testing.T) {
	selector := func(namespace, name string) policyv1alpha1.ResourceSelector {
		return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name}
	}
	spec := policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{
		selector("", "web"), selector("shop", ""), selector("blog", ""),
	}}
	tests := map[string]struct {
		of   policy.Object
		want []area
	}{
		"a PropagationPolicy does not leave its namespace": {
			&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: spec},
			[]area{{kind: deployments, namespace: "shop", name: "web"}, {kind: deployments, namespace: "shop"}},
		},
		"a ClusterPropagationPolicy goes where its selectors point": {
			&policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec},
			[]area{{kind: deployments, name: "web"}, {kind: deployments, namespace: "shop"}, {kind: deployments, namespace: "blog"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, reaches(tc.of), cmp.AllowUnexported(area{})); diff != "" {
				t.Errorf("reaches (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReachesByLabels(t *testing.T) {
	selecting := func(of *metav1.LabelSelector, name string) policyv1alpha1.ResourceSelector {
		return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: name, LabelSelector: of}
	}
	front := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near"}}}
	p := &policyv1alpha1.ClusterPropagationPolicy{Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{
		selecting(front, ""), selecting(broken, ""), selecting(front, "web"), selecting(&metav1.LabelSelector{}, ""),
	}}}
	var got []string
	for _, r := range reaches(p) {
		got = append(got, fmt.Sprintf("%q %v", r.name, r.labels))
	}
	if diff := cmp.Diff([]string{`"" tier=front`, `"web" <nil>`, `"" `}, got); diff != "" {
		t.Errorf("reaches (-want +got):\n%s", diff)
	}
}

func TestClaimsFollowTemplates(t *testing.T) {
	claimedBy := func(id string) metav1.Object {
		object := blank(deployments)
		policy.Claim{Namespace: "shop", Name: "p", ID: id}.Apply(object)
		return object
	}
	c := newClaims()
	web, db := named(deployments, "shop", "web"), named(deployments, "shop", "db")
	c.observe(web, claimedBy("one"))
	c.observe(db, claimedBy("one"))
	c.observe(db, claimedBy("two"))
	if diff := cmp.Diff([]string{"Deployment shop/web"}, inOrder(c.of("one"))); diff != "" {
		t.Errorf("after a template went from one policy to another (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Deployment shop/db"}, inOrder(c.of("two"))); diff != "" {
		t.Errorf("the other policy (-want +got):\n%s", diff)
	}
	c.observe(web, blank(deployments))
	c.forget(db)
	if len(c.byID) != 0 || len(c.byTemplate) != 0 {
		t.Errorf("kept %v and %v of released and deleted templates", c.byID, c.byTemplate)
	}
	c.observe(web, claimedBy("one"))
	c.dropKind(deployments)
	if got := c.of("one"); len(got) != 0 {
		t.Errorf("kept %v of a kind that is gone", got)
	}
}

func TestBlockedRequestsAreTakenOnce(t *testing.T) {
	b := newBlocked()
	override := types.NamespacedName{Namespace: "shop", Name: "o"}
	first := request{named(deployments, "shop", "web"), policy.TemplateChanged}
	second := request{named(deployments, "shop", "web"), policy.PolicyChanged}
	b.add(override, first)
	b.add(override, first)
	b.add(override, second)
	if got := b.take(types.NamespacedName{Name: "o"}); len(got) != 0 {
		t.Errorf("a ClusterOverridePolicy of that name wakes %v", got)
	}
	if got := sets.New(b.take(override)...); !got.Equal(sets.New(first, second)) {
		t.Errorf("took %v", got)
	}
	if got := b.take(override); len(got) != 0 {
		t.Errorf("took %v again", got)
	}
	b.add(override, first)
	b.add(override, second)
	b.add(override, request{named(deployments, "shop", "db"), policy.TemplateChanged})
	b.forget(first.reference)
	if diff := cmp.Diff([]request{{named(deployments, "shop", "db"), policy.TemplateChanged}}, b.take(override), cmp.AllowUnexported(request{}, reference{})); diff != "" {
		t.Errorf("after a template was forgotten (-want +got):\n%s", diff)
	}
}

func TestReferencesAreReadable(t *testing.T) {
	if got := named(deployments, "shop", "web").String(); !strings.Contains(got, "Deployment shop/web") {
		t.Errorf("got %q", got)
	}
}
