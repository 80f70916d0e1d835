package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestWhatHoldsAClusterThatLeaves(t *testing.T) {
	condition := func(of string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: of, Status: status, Message: message}
	}
	ready := func(status metav1.ConditionStatus, message string) metav1.Condition {
		return condition(clusterv1alpha1.ClusterConditionReady, status, message)
	}
	ours := []string{clusterv1alpha1.ClusterControllerFinalizer}
	tests := map[string]struct {
		leaving    Leaving
		finalizers []string
		conditions []metav1.Condition
		want       []string
	}{
		"nothing that is known": {finalizers: ours},
		"no controller runs": {leaving: Leaving{SpaceStays: true}, finalizers: ours,
			want: []string{"no controller has taken it up: see whether karmada-controller-manager is running and leads"}},
		"a member that is well and slow": {leaving: Leaving{Works: 1, Work: "karmada-es-m1/web"}, finalizers: ours,
			conditions: []metav1.Condition{ready(metav1.ConditionTrue, "healthy")},
			want:       []string{"1 Work is left, such as karmada-es-m1/web: their objects are being deleted in the cluster, see the events of the Works"}},
		"a member that was lost a moment ago": {leaving: Leaving{Works: 3, Work: "karmada-es-m1/web"}, finalizers: ours,
			conditions: []metav1.Condition{ready(metav1.ConditionTrue, "healthy"), condition(clusterv1alpha1.ClusterConditionAnswering, metav1.ConditionFalse, "refused")},
			want:       []string{"3 Works are left, such as karmada-es-m1/web: the cluster does not answer since a moment; they are let go once it is not Ready"}},
		"a member that is lost": {leaving: Leaving{Works: 3, Work: "karmada-es-m1/web"}, finalizers: ours,
			conditions: []metav1.Condition{ready(metav1.ConditionFalse, "cluster is not reachable")},
			want:       []string{"3 Works are left, such as karmada-es-m1/web: the cluster is not Ready (cluster is not reachable); their objects stay in it"}},
		"a member that nobody has looked at": {leaving: Leaving{Works: 1, Work: "karmada-es-m1/web"}, finalizers: ours,
			want: []string{"1 Work is left, such as karmada-es-m1/web: nobody has ever looked at the cluster"}},
		"bindings, and a finalizer of somebody else": {leaving: Leaving{Bindings: []string{"ResourceBinding shop/web", "ClusterResourceBinding crd"}},
			finalizers: append([]string{"example.com/keep"}, ours...),
			want: []string{
				"it is still in spec.clusters of ResourceBinding shop/web, ClusterResourceBinding crd: its scheduler takes it out, unless none serves it or scheduling is suspended",
				"finalizer example.com/keep of the Cluster: who has set it takes it off",
			}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.leaving.Cluster = &clusterv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "m1", Finalizers: tc.finalizers},
				Status:     clusterv1alpha1.ClusterStatus{Conditions: tc.conditions},
			}
			if diff := cmp.Diff(tc.want, tc.leaving.Holders(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("holders (-want +got):\n%s", diff)
			}
		})
	}
}
