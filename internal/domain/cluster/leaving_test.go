package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestLeavingConditions(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ready := metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady", Message: "healthy"}
	left := metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: "ClusterLeaving",
		Message: "the cluster was deleted, and its Works are gone"}
	leavingCondition := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: clusterv1alpha1.ClusterConditionLeaving, Status: metav1.ConditionTrue, Reason: reason, Message: message}
	}
	const (
		slow      = "their objects are being deleted in the cluster, see the events of the Works"
		scheduler = "its scheduler removes the cluster, or karmada-controller-manager does 30s after the deletion"
	)
	tests := map[string]struct {
		remains RemainingObjects
		after   time.Duration
		want    []metav1.Condition
	}{
		"Works right after the deletion": {RemainingObjects{Works: []string{"karmada-es-m1/web"}}, 0,
			[]metav1.Condition{ready, leavingCondition("WorksRemain", "remaining Works: "+slow)}},
		"Works after a while are named": {RemainingObjects{Works: []string{"karmada-es-m1/a", "karmada-es-m1/b"}}, BlockerNamingDelay,
			[]metav1.Condition{ready, leavingCondition("WorksRemain", "remaining Works: karmada-es-m1/a, karmada-es-m1/b: "+slow)}},
		"the first of many Works": {RemainingObjects{Works: []string{"a", "b", "c", "d"}, Bindings: []string{"x"}}, BlockerNamingDelay,
			[]metav1.Condition{ready, leavingCondition("WorksRemain", "remaining Works: a, b, c and others: "+slow)}},
		"no Works, but new ones are possible": {RemainingObjects{}, BlockerNamingDelay,
			[]metav1.Condition{ready, leavingCondition("WorksRemain", "remaining Works: "+slow)}},
		"bindings": {RemainingObjects{WorksGone: true, Bindings: []string{"shop/web"}}, BlockerNamingDelay,
			[]metav1.Condition{left, leavingCondition("BindingsRemain", "remaining bindings: shop/web: "+scheduler)}},
		"only foreign finalizers": {RemainingObjects{WorksGone: true}, 0,
			[]metav1.Condition{left, leavingCondition("FinalizersRemain", "remaining finalizers: example.com/keep")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "m1", DeletionTimestamp: &metav1.Time{Time: noon}, Finalizers: []string{"example.com/keep"}},
				Status:     clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{ready}},
			}
			SetLeavingConditions(cluster, tc.remains, noon.Add(tc.after))
			if diff := cmp.Diff(tc.want, cluster.Status.Conditions, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLeavingWinsOverProbe(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	left := metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterReasonLeaving}
	seen := ReadyCondition(true, true, "", 1, metav1.NewTime(noon))
	if diff := cmp.Diff(ReadinessDecision{Ready: left}, DecideReadiness([]metav1.Condition{left}, seen, Thresholds{}, noon)); diff != "" {
		t.Errorf("judgement (-want +got):\n%s", diff)
	}
	if silence := MissedHeartbeatCondition(HeartbeatRecord{LastSeen: noon}, &left, GracePeriods{}, 1, noon.Add(time.Hour)); silence != nil {
		t.Errorf("silence %+v", silence)
	}
}
