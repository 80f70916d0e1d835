package clusterstatus

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/loop"
)

// fakeMembers returns no connections. It records the members whose connections are closed.
type fakeMembers struct{ closed []string }

func (f *fakeMembers) GetForCluster(context.Context, *clusterv1alpha1.Cluster) (*member.Member, error) {
	return nil, context.Canceled
}
func (f *fakeMembers) OnUnhealthy(func(string)) {}
func (f *fakeMembers) CloseMember(name string)  { f.closed = append(f.closed, name) }

func TestUnservedClusterIsClosed(t *testing.T) {
	tests := map[string]struct {
		only   string
		change func(*clusterv1alpha1.Cluster)
		want   []string
	}{
		"unchanged":                     {"", func(*clusterv1alpha1.Cluster) {}, nil},
		"changed spec":                  {"", func(c *clusterv1alpha1.Cluster) { c.Generation++ }, nil},
		"pull mode":                     {"", func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Pull }, []string{"m1"}},
		"removed finalizer":             {"", func(c *clusterv1alpha1.Cluster) { c.Finalizers = nil }, []string{"m1"}},
		"a cluster that was not served": {"m2", func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Pull }, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			measured, err := newClusterMetrics(registry)
			if err != nil {
				t.Fatal(err)
			}
			closed := &fakeMembers{}
			c := &controller{options: DefaultOptions(), members: closed, metrics: measured}
			c.options.ClusterName = test.only
			c.queues = loop.NewMemberQueues(loop.MemberQueueOptions{Name: Name, Workers: 1, OnRemoved: measured.deleteCluster}, func(context.Context, string, types.NamespacedName) (reconcile.Result, error) {
				return reconcile.Result{}, nil
			})
			older := fullCluster("m1")
			older.Spec.SyncMode, older.Finalizers = clusterv1alpha1.Push, []string{clusterv1alpha1.ClusterControllerFinalizer}
			measured.record(older, 0)
			newer := older.DeepCopy()
			test.change(newer)
			c.handleUpdate(older, newer)
			if diff := cmp.Diff(test.want, closed.closed); diff != "" {
				t.Errorf("closed (-want +got):\n%s", diff)
			}
			if forgotten := len(gatherSeries(t, registry)) == 0; forgotten != (test.want != nil) {
				t.Errorf("the metrics are deleted: %t", forgotten)
			}
		})
	}
}
