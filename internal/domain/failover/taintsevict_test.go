package failover

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

func TestSetTaintsEvict(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	noExecute, noSchedule := corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute}, corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule}
	tests := map[string]struct {
		taints  []corev1.Taint
		missing []string
		want    string
		remedy  string
	}{
		"no taint":           {},
		"a NoSchedule taint": {taints: []corev1.Taint{noSchedule}, missing: []string{FlagFailover}},
		"evictions are on":   {taints: []corev1.Taint{noExecute}, want: "True EvictionEnabled: NoExecute taints evict the workloads that do not tolerate them"},
		"evictions are off": {taints: []corev1.Taint{noExecute}, missing: []string{FlagFailover, FlagNoExecute},
			want:   "False EvictionDisabled: NoExecute taints evict no workloads: start karmada-controller-manager with --feature-gates=Failover=true and --enable-no-execute-taint-eviction=true (karmada up --failover and karmadactl init --failover set both)",
			remedy: "start karmada-controller-manager with --feature-gates=Failover=true and --enable-no-execute-taint-eviction=true (karmada up --failover and karmadactl init --failover set both)"},
		"one flag is missing": {taints: []corev1.Taint{noExecute}, missing: []string{FlagNoExecute},
			want:   "False EvictionDisabled: NoExecute taints evict no workloads: start karmada-controller-manager with --enable-no-execute-taint-eviction=true",
			remedy: "start karmada-controller-manager with --enable-no-execute-taint-eviction=true"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{}
			cluster.Spec.Taints = test.taints
			cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionTaintsEvict, Status: metav1.ConditionUnknown}}
			SetTaintsEvict(cluster, test.missing, now)
			got := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionTaintsEvict)
			if test.want == "" {
				if got != nil {
					t.Errorf("got %+v, want no condition", got)
				}
				return
			}
			if diff := cmp.Diff(test.want, string(got.Status)+" "+got.Reason+": "+got.Message); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			if got.Status == metav1.ConditionFalse && EvictionRemedy(got) != test.remedy {
				t.Errorf("remedy %q, want %q", EvictionRemedy(got), test.remedy)
			}
		})
	}
}
