package objectcache_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

func TestSelects(t *testing.T) {
	m := newFakeMember(t)
	incomplete := func(name, address string) *clusterv1alpha1.Cluster {
		cluster := clusterOf(name, address)
		cluster.Status.Conditions[1].Status = metav1.ConditionFalse
		return cluster
	}
	unreachable := incomplete("unreachable", "https://127.0.0.1:1")
	c := newControl(t, objectcache.Options{}, clusterOf("m1", m.URL), incomplete("incomplete", m.URL), unreachable, registryOf("all", "ConfigMap", "Gizmo"))
	c.expect("m1", "ConfigMap", objectcache.Current)
	c.expectReason("incomplete", "Gizmo", "does not serve")
	c.expectReason("unreachable", "Gizmo", "cannot be read")
	tests := map[string]struct {
		cluster, kind string
		want          bool
	}{
		"a kind that is cached is selected":                                      {"m1", "ConfigMap", true},
		"a kind that no registry names is not selected":                          {"m1", "Secret", false},
		"a kind that is not in the complete list of the cluster is not selected": {"m1", "Gizmo", false},
		"a kind that the member does not serve is not selected":                  {"incomplete", "Gizmo", false},
		"a kind is selected while it is unknown whether the cluster serves it":   {"unreachable", "Gizmo", true},
		"a kind of a cluster that does not exist is not selected":                {"gone", "ConfigMap", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := c.cache.Selects(test.cluster, schema.GroupVersionKind{Version: "v1", Kind: test.kind}); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
