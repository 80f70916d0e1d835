package binding

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestDeletedWorkIsRecreatedLaterInPullMode(t *testing.T) {
	tests := map[string]struct {
		mode   clusterv1alpha1.ClusterSyncMode
		target string
		want   int // number of bindings that are queued without a delay
	}{
		"a cluster in push mode":                             {clusterv1alpha1.Push, "m1", 1},
		"a cluster in pull mode":                             {clusterv1alpha1.Pull, "m1", 0},
		"a cluster in pull mode in which it is not expected": {clusterv1alpha1.Pull, "m2", 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
			bound.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: tc.target}}
			w := newFixture(t, bound, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: tc.mode}})
			deleted := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
				Namespace: "karmada-es-m1", Name: "web", Annotations: map[string]string{
					workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: "web-deployment",
				},
			}}
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			w.newWorkHandler().Delete(t.Context(), event.DeleteEvent{Object: deleted}, q)
			if q.Len() != tc.want {
				t.Errorf("%d bindings are queued at once, want %d", q.Len(), tc.want)
			}
		})
	}
}
