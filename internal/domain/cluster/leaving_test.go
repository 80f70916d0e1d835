package cluster

import (
	"testing"
	"time"

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
				"it is still in spec.clusters of ResourceBinding shop/web, ClusterResourceBinding crd: its scheduler takes it out, or karmada-controller-manager 30s after the deletion",
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

func TestWhatTheConditionsOfAClusterThatLeavesSay(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ready := metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady", Message: "healthy"}
	left := metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: "ClusterLeaving",
		Message: "the cluster was deleted, and its Works are gone"}
	says := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: clusterv1alpha1.ClusterConditionLeaving, Status: metav1.ConditionTrue, Reason: reason, Message: message}
	}
	const (
		slow      = "their objects are being deleted in the cluster, see the events of the Works"
		scheduler = "its scheduler takes it out, or karmada-controller-manager 30s after the deletion"
	)
	tests := map[string]struct {
		remains Remains
		after   time.Duration
		want    []metav1.Condition
	}{
		"Works at first": {Remains{Works: []string{"karmada-es-m1/web"}}, 0,
			[]metav1.Condition{ready, says("WorksRemain", "remaining Works: "+slow)}},
		"Works that take long are named": {Remains{Works: []string{"karmada-es-m1/a", "karmada-es-m1/b"}}, NameHoldersAfter,
			[]metav1.Condition{ready, says("WorksRemain", "remaining Works: karmada-es-m1/a, karmada-es-m1/b: "+slow)}},
		"the first of many Works": {Remains{Works: []string{"a", "b", "c", "d"}, Bindings: []string{"x"}}, NameHoldersAfter,
			[]metav1.Condition{ready, says("WorksRemain", "remaining Works: a, b, c and others: "+slow)}},
		"no Works, but there could be new ones": {Remains{}, NameHoldersAfter,
			[]metav1.Condition{ready, says("WorksRemain", "remaining Works: "+slow)}},
		"bindings": {Remains{WorksGone: true, Bindings: []string{"shop/web"}}, NameHoldersAfter,
			[]metav1.Condition{left, says("BindingsRemain", "remaining bindings: shop/web: "+scheduler)}},
		"nothing of ours": {Remains{WorksGone: true}, 0,
			[]metav1.Condition{left, says("FinalizersRemain", "remaining finalizers: example.com/keep")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "m1", DeletionTimestamp: &metav1.Time{Time: noon}, Finalizers: []string{"example.com/keep"}},
				Status:     clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{ready}},
			}
			ReportLeaving(cluster, tc.remains, noon.Add(tc.after))
			if diff := cmp.Diff(tc.want, cluster.Status.Conditions, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsSeenOfAMemberDoesNotUndoThatItsClusterLeaves(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	left := metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterReasonLeaving}
	seen := Seen(true, true, "", 1, metav1.NewTime(noon))
	if diff := cmp.Diff(Judgement{Ready: left}, Judge([]metav1.Condition{left}, seen, Thresholds{}, noon)); diff != "" {
		t.Errorf("judgement (-want +got):\n%s", diff)
	}
	if silence := Silence(Life{Heard: noon}, &left, Grace{}, 1, noon.Add(time.Hour)); silence != nil {
		t.Errorf("silence %+v", silence)
	}
}
