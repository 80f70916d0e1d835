package objectcache_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// listing returns a cluster with the kind and the resource of its only API.
func listing(name, address, kind, resource string) *clusterv1alpha1.Cluster {
	cluster := clusterOf(name, address)
	setKinds(cluster, kind)
	cluster.Status.APIEnablements[0].Resources[0].Name = resource
	return cluster
}

// expectSkipped waits until a kind of a cluster is reported as NotServed with a reason.
func (c *control) expectSkipped(cluster, kind string, reasons ...string) {
	c.t.Helper()
	c.eventually(func() string {
		for _, report := range c.cache.Report() {
			if report.Cluster != cluster || report.Kind != kind || report.State != objectcache.NotServed {
				continue
			}
			for _, reason := range reasons {
				if !strings.Contains(report.Message, reason) {
					return fmt.Sprintf("the message %q has no %q", report.Message, reason)
				}
			}
			return ""
		}
		return fmt.Sprintf("%s of %s is not skipped", kind, cluster)
	})
	if c.source(cluster, kind) != nil {
		c.t.Errorf("%s of %s is cached", kind, cluster)
	}
}

func (c *control) expectKind(resource, kind string, namespaced bool) {
	c.t.Helper()
	got := c.cache.Kind(schema.GroupVersionResource{Version: "v1", Resource: resource})
	if got == nil || got.GroupVersionKind().Kind != kind || got.Namespaced() != namespaced {
		c.t.Errorf("the resource %s is %+v, want the kind %s", resource, got, kind)
	}
}

func TestAMemberCannotRenameABuiltInKind(t *testing.T) {
	tests := map[string]struct {
		resource   string
		namespaced bool
		listed     string
		reasons    []string
	}{
		"to the resource of another kind": {"pods", true, "pods", []string{`"pods"`, `"secrets"`}},
		"only when it is asked":           {"pods", true, "secrets", []string{`"pods"`, `"secrets"`}},
		"to an unknown resource":          {"others", true, "others", []string{`"others"`, `"secrets"`}},
		"to another scope":                {"secrets", false, "secrets", []string{"cluster-scoped", "namespaced"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			hostile, good := newFakeMember(t), newFakeMember(t)
			hostile.unserve("secrets")
			hostile.serve(test.resource, "Secret", test.namespaced)
			good.serve("pods", "Pod", true)
			good.put("secrets", "default", "s", "1")
			good.put("pods", "default", "p", "1")
			goodCluster := clusterOf("m1", good.URL)
			setKinds(goodCluster, "Secret", "Pod")
			c := newControl(t, objectcache.Options{}, goodCluster, listing("a-hostile", hostile.URL, "Secret", test.listed), registryOf("all", "Secret", "Pod"))
			c.expect("m1", "Secret", objectcache.Current, "default/s=1")
			c.expect("m1", "Pod", objectcache.Current, "default/p=1")
			c.expectSkipped("a-hostile", "Secret", test.reasons...)
			c.expectKind("secrets", "Secret", true)
			c.expectKind("pods", "Pod", true)
		})
	}
}

func TestAKindKeepsTheResourceOfItsFirstCluster(t *testing.T) {
	first, second := newFakeMember(t), newFakeMember(t)
	first.serve("widgets", "Widget", false)
	first.put("widgets", "", "w", "1")
	second.serve("gadgets", "Widget", true)
	second.put("gadgets", "default", "g", "1")
	c := newControl(t, objectcache.Options{}, listing("z-first", first.URL, "Widget", "widgets"), registryOf("all", "Widget"))
	c.expect("z-first", "Widget", objectcache.Current, "/w=1")
	c.create(listing("a-second", second.URL, "Widget", "gadgets"))
	c.expectSkipped("a-second", "Widget", `"gadgets"`, `"widgets"`)
	c.expectKind("widgets", "Widget", false)
	c.delete(listing("z-first", "", "", ""))
	c.cache.NotifyCluster("z-first")
	c.changeCluster("a-second", func(c *clusterv1alpha1.Cluster) { c.Generation++ })
	c.expect("a-second", "Widget", objectcache.Current, "default/g=1")
	c.expectKind("gadgets", "Widget", true)
}

func TestAKindCannotTakeTheResourceOfAnother(t *testing.T) {
	tests := map[string]string{"that is cached": "gadgets", "that is built-in": "pods"}
	for name, taken := range tests {
		t.Run(name, func(t *testing.T) {
			hostile, good := newFakeMember(t), newFakeMember(t)
			hostile.serve(taken, "Widget", true)
			good.serve("gadgets", "Gadget", true)
			good.put("gadgets", "default", "g", "1")
			incomplete := clusterOf("a-hostile", hostile.URL)
			incomplete.Status.Conditions[1].Status = metav1.ConditionFalse
			c := newControl(t, objectcache.Options{}, incomplete, listing("m1", good.URL, "Gadget", "gadgets"), registryOf("all", "Widget", "Gadget"))
			c.expect("m1", "Gadget", objectcache.Current, "default/g=1")
			c.expectSkipped("a-hostile", "Widget", taken)
			c.expectKind("gadgets", "Gadget", true)
		})
	}
}

func TestABuiltInKindKeepsItsResource(t *testing.T) {
	cache, err := objectcache.New(objectcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// A user may name a kind that does not exist, and whose plural is that of a built-in kind.
	for _, kind := range []string{"pod", "Pod"} {
		cache.SetKind(schema.GroupVersionKind{Version: "v1", Kind: kind}, "pods", true)
	}
	got := cache.Kind(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).GroupVersionKind().Kind
	if diff := cmp.Diff("Pod", got); diff != "" {
		t.Errorf("the kind of pods (-want +got):\n%s", diff)
	}
}

func TestEndpointsAreCached(t *testing.T) {
	m := newFakeMember(t)
	m.serve("endpoints", "Endpoints", true)
	m.put("endpoints", "default", "e", "1")
	c := newControl(t, objectcache.Options{}, listing("m1", m.URL, "Endpoints", "endpoints"), registryOf("all", "Endpoints"))
	c.expect("m1", "Endpoints", objectcache.Current, "default/e=1")
}
