package deletionguard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
		tracker, err := newWorkTracker(registry)
		if err != nil {
			t.Fatal(err)
		}
		tracker.countHeld(newDeletedWork("web"), "m1", "NotReplaced")
		if diff := cmp.Diff(map[string]float64{"m1": 1}, heldByCluster(t, registry)); diff != "" {
			t.Errorf("held deletions (-want +got):\n%s", diff)
		}
	}
}

func TestTrackerRecognizesReleasedWorksByUID(t *testing.T) {
	karmadaWork := newDeletedWork("web")
	recreated := karmadaWork.DeepCopy()
	recreated.UID = "2"
	tracker, err := newWorkTracker(nil)
	if err != nil {
		t.Fatal(err)
	}
	tracker.release(karmadaWork, noon)
	if !tracker.isReleased(karmadaWork, noon) {
		t.Error("a released Work is not recognized")
	}
	if tracker.isReleased(recreated, noon) {
		t.Error("a new Work of the same name is taken for the released one")
	}
	if tracker.isReleased(karmadaWork, noon.Add(releasedWorkTTL)) {
		t.Error("a Work from a restored backup counts as released forever")
	}
	tracker.remove(client.ObjectKeyFromObject(karmadaWork))
	if tracker.isReleased(karmadaWork, noon) {
		t.Error("a deleted Work still has an entry")
	}
}
