package workstatus

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/loop"
)

func TestWorkersStopWhenAnotherProcessServesTheCluster(t *testing.T) {
	tests := map[string]struct {
		mode clusterv1alpha1.ClusterSyncMode
		want int
	}{
		"a cluster that gets an agent":      {clusterv1alpha1.Pull, 0},
		"a cluster that stays in push mode": {clusterv1alpha1.Push, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := &clusterv1alpha1.Cluster{
					ObjectMeta: metav1.ObjectMeta{Name: "member1"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
				}
				after := before.DeepCopy()
				after.Spec.SyncMode = tc.mode
				c := &controller{scope: loop.SyncModeScope{Mode: clusterv1alpha1.Push}}
				passes := 0
				c.queues = loop.NewMemberQueues(loop.MemberQueueOptions{Name: Name, Workers: 1, IsServed: func(context.Context, string) bool { return true }},
					func(context.Context, string, types.NamespacedName) (reconcile.Result, error) {
						passes++
						return reconcile.Result{}, nil
					})
				ctx, cancel := context.WithCancel(t.Context())
				finished := make(chan error)
				go func() { finished <- c.queues.Start(ctx) }()
				synctest.Wait()
				// This change is still delayed when the sync mode of the cluster changes.
				c.queues.Add("member1", types.NamespacedName{Namespace: "karmada-es-member1", Name: "web"}, loop.LivePriority, time.Second)
				c.newClusterHandler().OnUpdate(before, after)
				<-time.After(time.Minute)
				synctest.Wait()
				if passes != tc.want {
					t.Errorf("%d Works were processed, want %d", passes, tc.want)
				}
				cancel()
				if err := <-finished; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
