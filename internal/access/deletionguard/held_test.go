package deletionguard

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestWorkOfUnservedKindIsCountedAsHeld(t *testing.T) {
	registry := prometheus.NewRegistry()
	w, karmadaWork := newGuardFixture(t), newDeletedWork("web")
	var err error
	if w.works, err = newWorkTracker(registry); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.ReportUnservedKind(readyCluster(), karmadaWork, errors.New("no response"))
	}
	expectHeldMetric(t, registry, `karmada_work_deletions_held{member_cluster="m1",reason="KindNotServed"} 1`)
	w.works.release(karmadaWork, noon)
	expectHeldMetric(t, registry, `karmada_work_deletions_held{member_cluster="m1",reason="KindNotServed"} 0`)
}

func expectHeldMetric(t *testing.T, registry *prometheus.Registry, want string) {
	t.Helper()
	if want != "" {
		want = "# HELP karmada_work_deletions_held Number of Works whose deletion waits for a confirmation or an explanation.\n" +
			"# TYPE karmada_work_deletions_held gauge\n" + want + "\n"
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "karmada_work_deletions_held"); err != nil {
		t.Error(err)
	}
}
