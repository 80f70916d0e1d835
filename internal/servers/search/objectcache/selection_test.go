package objectcache_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

func TestNamespacesRestrictOnlyKindsWithNamespaces(t *testing.T) {
	m := newFakeMember(t)
	m.put("configmaps", "default", "a", "1")
	m.put("configmaps", "other", "b", "1")
	m.put("nodes", "", "n1", "1")
	registry := registryOf("all", "ConfigMap", "Node")
	for i := range registry.Spec.ResourceSelectors {
		registry.Spec.ResourceSelectors[i].Namespace = "default"
	}
	c := newControl(t, objectcache.Options{}, clusterOf("m1", m.URL), registry)
	// Search caches all namespaces.
	c.expect("m1", "ConfigMap", objectcache.Current, "default/a=1", "other/b=1")
	c.expect("m1", "Node", objectcache.Current, "/n1=1")
	if diff := cmp.Diff([]string{"default"}, c.source("m1", "ConfigMap").Namespaces()); diff != "" {
		t.Errorf("namespaces of configmaps (-want +got):\n%s", diff)
	}
	if got := c.source("m1", "Node").Namespaces(); got != nil {
		t.Errorf("namespaces of nodes: %v, want none", got)
	}
	c.changeRegistry("all", func(r *searchv1alpha1.ResourceRegistry) { r.Spec.ResourceSelectors[0].Namespace = "" })
	c.eventually(func() string {
		if c.source("m1", "ConfigMap").Namespaces() != nil {
			return "the restriction stays"
		}
		return ""
	})
	if lists, _ := m.counts("configmaps"); lists != 1 {
		t.Errorf("configmaps were listed %d times, want once", lists)
	}
}

func TestAKindOutsideAnIncompleteListIsFound(t *testing.T) {
	m := newFakeMember(t)
	m.serve("gizmos", "Gizmo", false)
	m.put("gizmos", "", "g", "1")
	cluster := clusterOf("m1", m.URL)
	cluster.Status.Conditions[1].Status = metav1.ConditionFalse
	c := newControl(t, objectcache.Options{}, cluster, registryOf("all", "Gizmo"))
	c.expect("m1", "Gizmo", objectcache.Current, "/g=1")
}

func TestRegistriesSelectClustersAndBackEnds(t *testing.T) {
	m1, m2 := newFakeMember(t), newFakeMember(t)
	m1.put("configmaps", "default", "a", "1")
	m2.put("configmaps", "default", "b", "1")
	registry := registryOf("one", "ConfigMap", "Widget")
	registry.Spec.TargetCluster = policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}
	registry.Spec.BackendStore = &searchv1alpha1.BackendStoreConfig{OpenSearch: &searchv1alpha1.OpenSearchConfig{Addresses: []string{"https://one"}}}
	c := newControl(t, objectcache.Options{}, clusterOf("m1", m1.URL), clusterOf("m2", m2.URL), registry)
	c.expect("m1", "ConfigMap", objectcache.Current, "default/a=1")
	c.expectReason("m1", "Widget", "does not serve Widget")
	if c.source("m2", "ConfigMap") != nil || c.cache.OpenSearch("m1") == nil || c.cache.OpenSearch("m2") != nil {
		t.Error("the registry must select only m1")
	}
	c.changeRegistry("one", func(r *searchv1alpha1.ResourceRegistry) { r.Spec.TargetCluster.ClusterNames = []string{"m2"} })
	c.expect("m2", "ConfigMap", objectcache.Current, "default/b=1")
	c.eventually(func() string {
		if c.source("m1", "ConfigMap") != nil || c.cache.OpenSearch("m1") != nil || c.cache.OpenSearch("m2") == nil {
			return "the registry must select only m2"
		}
		return ""
	})
}

func TestAMemberThatHangsWhileItListsDelaysNoOther(t *testing.T) {
	const hanging = 8
	m := newFakeMember(t)
	for i := range 20 {
		m.put("configmaps", "default", fmt.Sprintf("c%02d", i), "1")
	}
	c := newControl(t, objectcache.Options{PageSize: 5}, registryOf("all", "ConfigMap"))
	// The members respond to discovery, and hang at their first list.
	for i := range hanging {
		silent := newFakeMember(t)
		silent.hangLists()
		c.create(clusterOf(fmt.Sprintf("hanging-%d", i), silent.URL))
	}
	c.eventually(func() string {
		for i := range hanging {
			if c.source(fmt.Sprintf("hanging-%d", i), "ConfigMap") == nil {
				return "the hanging clusters are not watched"
			}
		}
		return ""
	})
	c.create(clusterOf("m1", m.URL))
	c.eventually(func() string {
		if source := c.source("m1", "ConfigMap"); source == nil || source.Len() != 20 {
			return "the member that answers is not cached"
		}
		return ""
	})
}

func (c *control) create(cluster *clusterv1alpha1.Cluster) {
	c.t.Helper()
	if err := c.karmada.Create(c.t.Context(), cluster); err != nil {
		c.t.Fatal(err)
	}
	c.cache.NotifyCluster(cluster.Name)
}

func TestEachChangeInAMemberIsOneEvent(t *testing.T) {
	m := newFakeMember(t)
	m.put("configmaps", "default", "a", "0")
	c := newControl(t, objectcache.Options{}, clusterOf("m1", m.URL), registryOf("all", "ConfigMap"))
	c.expect("m1", "ConfigMap", objectcache.Current, "default/a=0")
	kind := c.cache.Kinds()[0]
	cursor := kind.Follow(kind.Snapshot().Position())
	var slowest time.Duration
	for i := range 50 {
		began, want := time.Now(), strconv.Itoa(i+1)
		m.put("configmaps", "default", "a", want)
		events, err := cursor.Next(t.Context())
		if err != nil || len(events) != 1 || events[0].Type != objectcache.Modified || events[0].New.Labels().Get("value") != want {
			t.Fatalf("events %+v, %v, want the change to %s", events, err, want)
		}
		slowest = max(slowest, time.Since(began))
	}
	t.Logf("the slowest of 50 events took %s", slowest)
}
