package deletionguard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// heldByCluster returns the value of the metric for each cluster.
func heldByCluster(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			found[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
		}
	}
	return found
}

// A process whose control plane is restored from a backup creates another Guard.
func TestHeldMetricIsResetByNextGuard(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		held, err := newHeldDeletions(registry)
		if err != nil {
			t.Fatal(err)
		}
		held.add("m1", types.NamespacedName{Name: "web"}, "NotReplaced")
		if diff := cmp.Diff(map[string]float64{"m1": 1}, heldByCluster(t, registry)); diff != "" {
			t.Errorf("held deletions (-want +got):\n%s", diff)
		}
	}
}
