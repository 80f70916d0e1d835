package clustertaintpolicy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/api"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/loop"
)

func newReconciler(t *testing.T, objects ...client.Object) *reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &reconciler{karmada: store, events: loop.NewEvents(record.NewFakeRecorder(10)), now: time.Now}
}

func newCluster(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func newPolicyFor(clusters ...string) *policyv1alpha1.ClusterTaintPolicy {
	created := newPolicy("broken", metav1.ConditionFalse, false)
	if len(clusters) > 0 {
		created.Spec.TargetClusters = &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}
	}
	return created
}

func TestPoliciesEnqueueTheirClusters(t *testing.T) {
	cases := map[string]struct {
		before, after *policyv1alpha1.ClusterTaintPolicy
		want          []string
	}{
		"a new policy for all clusters":              {nil, newPolicyFor(), []string{"m1", "m2", "m3"}},
		"a new policy for two clusters":              {nil, newPolicyFor("m1", "m3"), []string{"m1", "m3"}},
		"a policy that changes its clusters":         {newPolicyFor("m1", "m2"), newPolicyFor("m2", "m3"), []string{"m1", "m2", "m3"}},
		"a policy that targeted all clusters before": {newPolicyFor(), newPolicyFor("m2"), []string{"m1", "m2", "m3"}},
		"an unchanged policy":                        {newPolicyFor("m1"), newPolicyFor("m1"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			t.Cleanup(q.ShutDown)
			handler := newReconciler(t, newCluster("m1"), newCluster("m2"), newCluster("m3")).newPolicyHandler()
			if tc.before == nil {
				handler.Create(t.Context(), event.CreateEvent{Object: tc.after}, q)
			} else {
				handler.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, q)
			}
			var got []string
			for q.Len() > 0 {
				request, _ := q.Get()
				got = append(got, request.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClusterInDeletionGetsNoTaint(t *testing.T) {
	cluster := newCluster("m1")
	cluster.Finalizers, cluster.DeletionTimestamp = []string{"karmada.io/cluster-controller"}, new(metav1.Now())
	cluster.Status.Conditions = []metav1.Condition{{Type: "DNS", Status: metav1.ConditionFalse}}
	r := newReconciler(t, cluster, newPolicyFor())
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cluster)}); err != nil {
		t.Fatal(err)
	}
	if err := r.karmada.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil || len(cluster.Spec.Taints) > 0 {
		t.Errorf("taints are [%s], %v", formatTaints(cluster.Spec.Taints), err)
	}
}
