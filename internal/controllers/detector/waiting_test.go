package detector

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/domain/policy"
)

var (
	configMaps   = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	clusterRoles = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
)

func TestWaitingTemplatesMatchingFilter(t *testing.T) {
	w := newWaitingTemplates()
	for _, r := range []templateRef{
		newRef(deployments, "shop", "web"), newRef(deployments, "shop", "db"), newRef(deployments, "blog", "web"),
		newRef(configMaps, "shop", "web"), newRef(clusterRoles, "", "admin"),
	} {
		w.add(r, map[string]string{"name": r.Key.Name})
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
			r := newRef(
				rapid.SampledFrom([]schema.GroupVersionKind{deployments, configMaps}).Draw(t, "kind"),
				rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
				rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"))
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				w.deleteKind(r.Kind)
				for held := range model {
					if held.Kind == r.Kind {
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
		held := append(w.matching(policy.Filter{Kind: deployments}), w.matching(policy.Filter{Kind: configMaps})...)
		if diff := cmp.Diff(sortedNames(model.UnsortedList()), sortedNames(held)); diff != "" {
			t.Fatalf("waiting (-want +got):\n%s", diff)
		}
		if model.Len() == 0 && len(w.byKind) != 0 {
			t.Fatalf("no template waits, but %v is held", w.byKind)
		}
	})
}

func TestBlockedRequestsAreTakenOnce(t *testing.T) {
	b := newWaitingRequests()
	override := types.NamespacedName{Namespace: "shop", Name: "o"}
	first := newRef(deployments, "shop", "web").request(policy.TemplateChanged)
	second := newRef(deployments, "shop", "web").request(policy.PolicyChanged)
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
	b.add(override, first.Template.request(policy.RulesChanged))
	b.add(override, newRef(deployments, "shop", "db").request(policy.TemplateChanged))
	b.deleteTemplate(first.Template)
	if diff := cmp.Diff([]templateRequest{newRef(deployments, "shop", "db").request(policy.TemplateChanged)}, b.take(override)); diff != "" {
		t.Errorf("after a template was removed (-want +got):\n%s", diff)
	}
}

func TestInitialTemplatesAreTakenOnce(t *testing.T) {
	started := time.Unix(100_000, 0)
	tests := map[string]struct {
		age  time.Duration
		want bool
	}{
		"an old template":                    {time.Hour, true},
		"a template of the last minute":      {time.Minute, false},
		"a template at the limit":            {reportMaxAge, false},
		"a template created after the start": {-time.Minute, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			initial, web := newOldTemplates(), newRef(deployments, "shop", "web")
			initial.setStartTime(started)
			initial.add(web, started.Add(-test.age))
			if got := initial.take(web); got != test.want {
				t.Errorf("held: %v", got)
			}
			if initial.take(web) {
				t.Error("the template is held after it was taken")
			}
		})
	}
}

func TestWaitingTimeStartsAtFirstRecord(t *testing.T) {
	w, web := newWaitingTemplates(), newRef(deployments, "shop", "web")
	if since := w.since(web); !since.IsZero() {
		t.Errorf("a template without a record waits since %s", since)
	}
	claimed := web.stub(nil)
	policy.Claim{Namespace: "shop", Name: "p", ID: "id"}.Apply(claimed)
	w.addUnclaimed(web, claimed)
	if since := w.since(web); !since.IsZero() {
		t.Errorf("a claimed template waits since %s", since)
	}
	w.addUnclaimed(web, web.stub(nil))
	first := w.since(web)
	w.add(web, map[string]string{"app": "web"})
	if got := w.since(web); !got.Equal(first) || first.IsZero() {
		t.Errorf("waits since %s, first %s", got, first)
	}
	w.remove(web)
	if since := w.since(web); !since.IsZero() {
		t.Errorf("a removed template waits since %s", since)
	}
}
