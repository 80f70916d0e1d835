package clustertaintpolicy

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/api"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

// newPolicy returns a policy that taints clusters whose condition DNS has the given status.
func newPolicy(name string, status metav1.ConditionStatus, remove bool) *policyv1alpha1.ClusterTaintPolicy {
	created := &policyv1alpha1.ClusterTaintPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	when := []policyv1alpha1.MatchCondition{{
		ConditionType: "DNS", Operator: policyv1alpha1.MatchConditionOpIn, StatusValues: []metav1.ConditionStatus{status},
	}}
	created.Spec.Taints = []policyv1alpha1.Taint{{Key: name, Effect: corev1.TaintEffectNoExecute}}
	if remove {
		created.Spec.RemoveOnConditions = when
	} else {
		created.Spec.AddOnConditions = when
	}
	return created
}

func TestTaintingSurvivesCrashesAroundWrites(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	looptest.CrashCase{
		NewStore: func() client.WithWatch {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
			cluster.Status.Conditions = []metav1.Condition{{Type: "DNS", Status: metav1.ConditionFalse}}
			cluster.Spec.Taints = []corev1.Taint{{Key: "over", Effect: corev1.TaintEffectNoExecute}}
			return fake.NewClientBuilder().WithScheme(scheme).WithObjects(
				cluster, newPolicy("broken", metav1.ConditionFalse, false), newPolicy("over", metav1.ConditionFalse, true),
			).Build()
		},
		NewLoop: func(karmada, _ client.WithWatch) func(context.Context) error {
			r := &reconciler{karmada: karmada, events: loop.NewEvents(record.NewFakeRecorder(10)), now: time.Now}
			return func(ctx context.Context) error {
				_, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: "m1"}})
				return err
			}
		},
		FinalState: func(ctx context.Context, from client.Reader) (string, error) {
			cluster := &clusterv1alpha1.Cluster{}
			err := from.Get(ctx, client.ObjectKey{Name: "m1"}, cluster)
			return formatTaints(cluster.Spec.Taints), err
		},
	}.Run(t)
}
