package objectcache_test

import (
	"fmt"
	"testing"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

func TestAllKindsAndClustersShareTheirLimits(t *testing.T) {
	tests := map[string]struct {
		options objectcache.Options
		cluster string
		kind    string
		reason  string
	}{
		"the kinds of a cluster": {objectcache.Options{MaxClusterBytes: 5000}, "m1", "Secret", "limit of 5000 bytes in objects of all kinds"},
		"all clusters":           {objectcache.Options{MaxBytes: 5000}, "m2", "Node", "all members together have more than the limit of 5000 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m1, m2 := newFakeMember(t), newFakeMember(t)
			m1.put("configmaps", "default", "a", "1")
			c := newControl(t, test.options, clusterOf("m1", m1.URL), clusterOf("m2", m2.URL), registryOf("all", "ConfigMap", "Secret", "Node"))
			for _, kind := range []string{"ConfigMap", "Secret", "Node"} {
				c.eventually(func() string {
					for _, cluster := range []string{"m1", "m2"} {
						if source := c.source(cluster, kind); source == nil || source.ResourceVersion() == "" {
							return kind + " of " + cluster + " is not listed"
						}
					}
					return ""
				})
			}
			target, resource, namespace := m1, "secrets", "default"
			if test.cluster == "m2" {
				target, resource, namespace = m2, "nodes", ""
			}
			for i := range 30 {
				target.put(resource, namespace, fmt.Sprintf("o%02d", i), "1")
			}
			c.expectReason(test.cluster, test.kind, test.reason)
			if got, _, _ := c.source(test.cluster, test.kind).State(); got != objectcache.Stale {
				t.Errorf("the state is %s, want Stale", got)
			}
			c.expect("m1", "ConfigMap", objectcache.Current, "default/a=1")
		})
	}
}

func TestRemovedObjectsDoNotCount(t *testing.T) {
	m := newFakeMember(t)
	c := newControl(t, objectcache.Options{MaxClusterBytes: 3000}, clusterOf("m1", m.URL), registryOf("one", "ConfigMap"))
	c.expect("m1", "ConfigMap", objectcache.Current)
	for i := range 30 {
		m.put("configmaps", "default", "a", fmt.Sprint(i))
		c.expect("m1", "ConfigMap", objectcache.Current, fmt.Sprintf("default/a=%d", i))
		m.remove("configmaps", "default", "a")
		c.expect("m1", "ConfigMap", objectcache.Current)
	}
}
