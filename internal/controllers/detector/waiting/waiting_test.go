package waiting

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/policy"
)

var (
	deployments  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	configMaps   = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	clusterRoles = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
)

func sortedNames(all []templates.Ref) []string {
	var texts []string
	for _, r := range all {
		texts = append(texts, r.String())
	}
	slices.Sort(texts)
	return texts
}

func TestWaitingTemplatesMatchingFilter(t *testing.T) {
	w := NewTemplates()
	for _, r := range []templates.Ref{
		templates.NewRef(deployments, "shop", "web"), templates.NewRef(deployments, "shop", "db"), templates.NewRef(deployments, "blog", "web"),
		templates.NewRef(configMaps, "shop", "web"), templates.NewRef(clusterRoles, "", "admin"),
	} {
		w.Add(r, map[string]string{"name": r.Key.Name})
	}
	called := func(name string) labels.Selector { return labels.SelectorFromSet(labels.Set{"name": name}) }
	tests := map[string]struct {
		of   policy.Filter
		want []string
	}{
		"all of a kind":                     {policy.Filter{Kind: deployments}, []string{"Deployment blog/web", "Deployment shop/db", "Deployment shop/web"}},
		"those of one namespace":            {policy.Filter{Kind: deployments, Namespace: "shop"}, []string{"Deployment shop/db", "Deployment shop/web"}},
		"one by name":                       {policy.Filter{Kind: deployments, Namespace: "shop", Name: "web"}, []string{"Deployment shop/web"}},
		"one name in all namespaces":        {policy.Filter{Kind: deployments, Name: "web"}, []string{"Deployment blog/web", "Deployment shop/web"}},
		"those with a label":                {policy.Filter{Kind: deployments, Labels: called("web")}, []string{"Deployment blog/web", "Deployment shop/web"}},
		"those of a namespace with a label": {policy.Filter{Kind: deployments, Namespace: "shop", Labels: called("web")}, []string{"Deployment shop/web"}},
		"none of those without the label":   {policy.Filter{Kind: deployments, Labels: called("cache")}, nil},
		"cluster-scoped ones":               {policy.Filter{Kind: clusterRoles}, []string{"ClusterRole /admin"}},
		"none of a namespace that has none": {policy.Filter{Kind: configMaps, Namespace: "blog"}, nil},
		"none of a kind that has none":      {policy.Filter{Kind: schema.GroupVersionKind{Kind: "Job"}}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, sortedNames(w.Matching(tc.of))); diff != "" {
				t.Errorf("matches (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaitingTemplatesAddAndRemove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, model := NewTemplates(), sets.New[templates.Ref]()
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			r := templates.NewRef(
				rapid.SampledFrom([]schema.GroupVersionKind{deployments, configMaps}).Draw(t, "kind"),
				rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
				rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"))
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				w.DeleteKind(r.Kind)
				for held := range model {
					if held.Kind == r.Kind {
						model.Delete(held)
					}
				}
			case 1, 2:
				w.Remove(r)
				model.Delete(r)
			default:
				w.Add(r, nil)
				model.Insert(r)
			}
		}
		held := append(w.Matching(policy.Filter{Kind: deployments}), w.Matching(policy.Filter{Kind: configMaps})...)
		if diff := cmp.Diff(sortedNames(model.UnsortedList()), sortedNames(held)); diff != "" {
			t.Fatalf("waiting (-want +got):\n%s", diff)
		}
		if model.Len() == 0 && len(w.byKind) != 0 {
			t.Fatalf("no template waits, but %v is held", w.byKind)
		}
	})
}

func TestBlockedRequestsAreTakenOnce(t *testing.T) {
	b := NewRequests()
	override := types.NamespacedName{Namespace: "shop", Name: "o"}
	first := templates.NewRef(deployments, "shop", "web").Request(policy.TemplateChanged)
	second := templates.NewRef(deployments, "shop", "web").Request(policy.PolicyChanged)
	b.Add(override, first)
	b.Add(override, first)
	b.Add(override, second)
	if got := b.Take(types.NamespacedName{Name: "o"}); len(got) != 0 {
		t.Errorf("a ClusterOverridePolicy of that name returns %v", got)
	}
	if got := sets.New(b.Take(override)...); !got.Equal(sets.New(first, second)) {
		t.Errorf("took %v", got)
	}
	if got := b.Take(override); len(got) != 0 {
		t.Errorf("took %v again", got)
	}
	b.Add(override, first)
	b.Add(override, second)
	b.Add(override, first.Ref.Request(policy.RulesChanged))
	b.Add(override, templates.NewRef(deployments, "shop", "db").Request(policy.TemplateChanged))
	b.DeleteTemplate(first.Ref)
	if diff := cmp.Diff([]templates.Request{templates.NewRef(deployments, "shop", "db").Request(policy.TemplateChanged)}, b.Take(override)); diff != "" {
		t.Errorf("after a template was removed (-want +got):\n%s", diff)
	}
}
