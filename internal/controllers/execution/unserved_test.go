package execution

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/deletionguard"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/loop"
)

func TestWorksOfUnservedKindsAreCountedAsHeld(t *testing.T) {
	registry := prometheus.NewRegistry()
	now := func() time.Time { return noon }
	ruling, err := deletionguard.New(deletionguard.Options{Registry: registry, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	c := &controller{judge: ruling, now: now, reports: loop.NewStatusWriter(fake.NewClientBuilder().Build(), nil, loop.DefaultStatusWriterOptions())}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	stored := newDeletedWork("")

	c.reportUnservedKinds(cluster, stored, []error{errors.New("rejected")})
	expectHeldMetric(t, registry, "")
	unserved := &member.KindUnservedError{Member: "m1", Cause: errors.New("no response")}
	c.reportUnservedKinds(cluster, stored, []error{errors.New("rejected"), unserved})
	c.reportUnservedKinds(cluster, stored, []error{unserved})
	expectHeldMetric(t, registry, `karmada_work_deletions_held{member_cluster="m1",reason="KindNotServed"} 1`)
	ruling.MarkSettled(stored)
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
