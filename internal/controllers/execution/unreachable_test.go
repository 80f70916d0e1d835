package execution

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/deletionguard"
	"karmada.io/karmada/internal/loop"
)

// lostMembers are members that do not respond.
type lostMembers struct{ Members }

func (lostMembers) IsHealthy(string) bool { return false }

func TestWorkAwaitsRecoveryOfLostCluster(t *testing.T) {
	c := &controller{
		members: lostMembers{}, tracker: newAppliedTracker(), events: loop.NewEvents(record.NewFakeRecorder(10)), now: time.Now,
		reports: loop.NewStatusWriter(fake.NewClientBuilder().Build(), nil, loop.DefaultStatusWriterOptions()),
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	stored := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web"}}
	if result, err := c.deliverWork(t.Context(), cluster, stored); !result.IsZero() || !errors.Is(err, loop.ErrAwaitsRecovery) {
		t.Errorf("result %v, error %v; want no retry before the recovery", result, err)
	}
}

// newGuard returns a deletion guard for controllers that delete nothing.
func newGuard(t *testing.T, karmada client.Client) *deletionguard.Guard {
	t.Helper()
	g, err := deletionguard.New(deletionguard.Options{Karmada: karmada, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
