package registries_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/domain/registries"
)

func newCluster(name string, change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "eu"}}}
	cluster.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "pods", Kind: "Pod"}, {Name: "nodes", Kind: "Node"}}},
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
	}
	cluster.Status.Conditions = []metav1.Condition{
		{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue},
		{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue},
	}
	for _, change := range change {
		change(cluster)
	}
	return cluster
}

func isIncomplete(c *clusterv1alpha1.Cluster) { c.Status.Conditions = c.Status.Conditions[:1] }

func isDown(c *clusterv1alpha1.Cluster) {
	c.Status.Conditions[0].Status, c.Status.Conditions[0].Reason, c.Status.Conditions[0].Message = metav1.ConditionFalse, "ClusterNotReachable", "no answer"
}

func isDeleting(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{} }

// registry returns a registry of kinds, each as "apiVersion Kind [namespace]".
func registry(name string, kinds ...string) *searchv1alpha1.ResourceRegistry {
	r := &searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, kind := range kinds {
		fields := append(strings.Split(kind, " "), "")
		r.Spec.ResourceSelectors = append(r.Spec.ResourceSelectors, searchv1alpha1.ResourceSelector{APIVersion: fields[0], Kind: fields[1], Namespace: fields[2]})
	}
	return r
}

func withOpenSearch(r *searchv1alpha1.ResourceRegistry, address string) *searchv1alpha1.ResourceRegistry {
	r.Spec.BackendStore = &searchv1alpha1.BackendStoreConfig{OpenSearch: &searchv1alpha1.OpenSearchConfig{Addresses: []string{address}}}
	return r
}

func onlyIn(r *searchv1alpha1.ResourceRegistry, names ...string) *searchv1alpha1.ResourceRegistry {
	r.Spec.TargetCluster = policyv1alpha1.ClusterAffinity{ClusterNames: names}
	return r
}

func kindOf(apiVersion, kind string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

func TestSelect(t *testing.T) {
	pods, nodes, widgets := kindOf("v1", "Pod"), kindOf("v1", "Node"), kindOf("example.org/v1", "Widget")
	address := func(a string) *searchv1alpha1.OpenSearchConfig {
		return &searchv1alpha1.OpenSearchConfig{Addresses: []string{a}}
	}
	tests := map[string]struct {
		cluster    *clusterv1alpha1.Cluster
		registries []*searchv1alpha1.ResourceRegistry
		want       registries.Selection
	}{
		"no registry selects nothing": {newCluster("m1"), nil, registries.Selection{}},
		"a kind has the resource name of the cluster": {
			newCluster("m1"), []*searchv1alpha1.ResourceRegistry{registry("a", "v1 Pod")},
			registries.Selection{Kinds: []registries.Kind{{GroupVersionKind: pods, Resource: "pods", Registries: []string{"a"}}}},
		},
		"namespaces of two registries are united": {
			newCluster("m1"), []*searchv1alpha1.ResourceRegistry{registry("b", "v1 Pod one"), registry("a", "v1 Pod two", "v1 Pod one")},
			registries.Selection{Kinds: []registries.Kind{{GroupVersionKind: pods, Resource: "pods", Namespaces: []string{"one", "two"}, Registries: []string{"a", "b"}}}},
		},
		"a selector of all namespaces wins over one namespace": {
			newCluster("m1"), []*searchv1alpha1.ResourceRegistry{registry("a", "v1 Pod one", "v1 Pod")},
			registries.Selection{Kinds: []registries.Kind{{GroupVersionKind: pods, Resource: "pods", Registries: []string{"a"}}}},
		},
		"a registry of another cluster has no effect": {
			newCluster("m1"), []*searchv1alpha1.ResourceRegistry{onlyIn(registry("a", "v1 Pod", "v2/ Pod"), "m2")}, registries.Selection{},
		},
		"a kind outside a complete list is skipped": {
			newCluster("m1"), []*searchv1alpha1.ResourceRegistry{registry("a", "example.org/v1 Widget")},
			registries.Selection{Skipped: []registries.Skipped{{Registry: "a", APIVersion: "example.org/v1", Kind: "Widget", Reason: `cluster "m1" does not serve Widget in example.org/v1`}}},
		},
		"a kind outside an incomplete list is unknown": {
			newCluster("m1", isIncomplete), []*searchv1alpha1.ResourceRegistry{registry("a", "example.org/v1 Widget", "v1 Node")},
			registries.Selection{Kinds: []registries.Kind{
				{GroupVersionKind: nodes, Resource: "nodes", Registries: []string{"a"}},
				{GroupVersionKind: widgets, Registries: []string{"a"}},
			}},
		},
		"a cluster that is not ready keeps its kinds": {
			newCluster("m1", isDown), []*searchv1alpha1.ResourceRegistry{registry("a", "v1 Pod")},
			registries.Selection{
				NotReady: `cluster "m1" is not ready: ClusterNotReachable: no answer`,
				Kinds:    []registries.Kind{{GroupVersionKind: pods, Resource: "pods", Registries: []string{"a"}}},
			},
		},
		"nothing is cached for a cluster that is being deleted": {
			newCluster("m1", isDeleting), []*searchv1alpha1.ResourceRegistry{withOpenSearch(registry("a", "v1 Pod"), "https://one")},
			registries.Selection{NotReady: `cluster "m1" is being deleted`},
		},
		"the first registry by name determines the back end": {
			newCluster("m1"), []*searchv1alpha1.ResourceRegistry{
				withOpenSearch(registry("c"), "https://three"), withOpenSearch(registry("b"), "https://two"), registry("a"),
			},
			registries.Selection{OpenSearch: address("https://two"), OpenSearchRegistries: []string{"b", "c"}},
		},
		"invalid selectors are skipped and the others are used": {
			newCluster("m1"), []*searchv1alpha1.ResourceRegistry{registry("a", "a/b/c Pod", "v1 ", " Pod", "v1 Pod")},
			registries.Selection{
				Kinds: []registries.Kind{{GroupVersionKind: pods, Resource: "pods", Registries: []string{"a"}}},
				Skipped: []registries.Skipped{
					{Registry: "a", APIVersion: "a/b/c", Kind: "Pod", Reason: "spec.resourceSelectors[0]: apiVersion: unexpected GroupVersion string: a/b/c: set it to a version such as v1, or to a group and a version such as apps/v1"},
					{Registry: "a", APIVersion: "v1", Reason: "spec.resourceSelectors[1]: kind is empty: set it to a kind such as Deployment"},
					{Registry: "a", Kind: "Pod", Reason: `spec.resourceSelectors[2]: apiVersion "" has no version: set it to a version such as v1, or to a group and a version such as apps/v1`},
				},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, registries.Select(test.cluster, compile(test.registries))); diff != "" {
				t.Errorf("selection (-want +got):\n%s", diff)
			}
		})
	}
}

func compile(all []*searchv1alpha1.ResourceRegistry) []*registries.Registry {
	var compiled []*registries.Registry
	for _, r := range all {
		compiled = append(compiled, registries.Compile(r))
	}
	return compiled
}

func TestRegisteredKindsIncludeKindsWithoutACluster(t *testing.T) {
	got := registries.RegisteredKinds(compile([]*searchv1alpha1.ResourceRegistry{
		onlyIn(registry("a", "v1 Pod", "apps/v1 Deployment"), "none"), registry("b", "v1 Pod x"),
	}))
	if diff := cmp.Diff([]schema.GroupVersionKind{kindOf("v1", "Pod"), kindOf("apps/v1", "Deployment")}, got); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

func TestSelectionProperties(t *testing.T) {
	kind := rapid.SampledFrom([]string{"v1 Pod", "v1 Pod one", "v1 Pod two", "v1 Node", "apps/v1 Deployment three", "example.org/v1 Widget", "/ Bad", "v1 "})
	rapid.Check(t, func(t *rapid.T) {
		var all []*searchv1alpha1.ResourceRegistry
		for i := range rapid.IntRange(0, 4).Draw(t, "registries") {
			r := registry(string(rune('a'+i)), rapid.SliceOfN(kind, 0, 4).Draw(t, "kinds")...)
			if rapid.Bool().Draw(t, "restricted") {
				onlyIn(r, rapid.SampledFrom([]string{"m1", "m2"}).Draw(t, "cluster"))
			}
			all = append(all, r)
		}
		cluster := newCluster("m1")
		if rapid.Bool().Draw(t, "incomplete") {
			isIncomplete(cluster)
		}
		selection := registries.Select(cluster, compile(all))
		shuffled := rapid.Permutation(all).Draw(t, "order")
		if diff := cmp.Diff(selection, registries.Select(cluster, compile(shuffled))); diff != "" {
			t.Fatalf("the order of registries matters:\n%s", diff)
		}
		for _, r := range all {
			if registries.Compile(r).Matches(cluster) {
				checkSelectors(t, r, selection)
			}
		}
	})
}

// checkSelectors requires that each selector of a matching registry has an effect or a reason.
func checkSelectors(t *rapid.T, r *searchv1alpha1.ResourceRegistry, selection registries.Selection) {
	for _, s := range r.Spec.ResourceSelectors {
		selected := slices.ContainsFunc(selection.Kinds, func(k registries.Kind) bool {
			return k.GroupVersionKind == kindOf(s.APIVersion, s.Kind) && slices.Contains(k.Registries, r.Name) &&
				(k.Namespaces == nil || s.Namespace != "" && slices.Contains(k.Namespaces, s.Namespace))
		})
		skipped := slices.ContainsFunc(selection.Skipped, func(k registries.Skipped) bool {
			return k.Registry == r.Name && k.APIVersion == s.APIVersion && k.Kind == s.Kind && k.Reason != ""
		})
		if selected == skipped {
			t.Fatalf("selector %+v of %s: selected %t, skipped %t", s, r.Name, selected, skipped)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add("apps/v1", "Deployment", "default", "m1", "region")
	f.Add("//", "", "", "", "=")
	f.Fuzz(func(t *testing.T, apiVersion, kind, namespace, cluster, label string) {
		r := registry("a", "v1 Pod")
		r.Spec.ResourceSelectors = append(r.Spec.ResourceSelectors, searchv1alpha1.ResourceSelector{APIVersion: apiVersion, Kind: kind, Namespace: namespace})
		r.Spec.TargetCluster = policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{cluster}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: kind}}}
		compiled := registries.Compile(r)
		selection := registries.Select(newCluster("m1"), []*registries.Registry{compiled})
		if compiled.Matches(newCluster("m1")) && len(selection.Kinds) == 0 {
			t.Error("the valid selector is lost")
		}
	})
}
