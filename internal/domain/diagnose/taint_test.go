package diagnose

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/failover"
)

func TestTaintLinks(t *testing.T) {
	added := metav1.NewTime(noon.Add(-time.Minute))
	noSchedule := corev1.Taint{Key: "gpu", Value: "only", Effect: corev1.TaintEffectNoSchedule}
	noExecute := corev1.Taint{Key: "repair", Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}
	tolerated := corev1.Toleration{Operator: corev1.TolerationOpExists}
	tests := map[string]struct {
		taint       corev1.Taint
		tolerations []corev1.Toleration
		// missing are the flags without which taints evict nothing. nil means that nothing is reported.
		missing []string
		want    string
		remedy  string
	}{
		"a new NoSchedule taint": {taint: noSchedule,
			want: "ok PlacedBeforeTaint: has taint gpu=only:NoSchedule, which keeps only new objects away: the object is already there and keeps its replicas"},
		"a cordoned cluster": {taint: corev1.Taint{Key: clusterv1alpha1.TaintClusterUnschedulable, Effect: corev1.TaintEffectNoSchedule},
			want: "ok PlacedBeforeTaint: is cordoned: has taint cluster.karmada.io/unschedulable:NoSchedule, which keeps only new objects away: the object is already there and keeps its replicas"},
		"a tolerated NoSchedule taint": {taint: noSchedule, tolerations: []corev1.Toleration{tolerated},
			want: "ok TaintTolerated: has taint gpu=only:NoSchedule, which the placement tolerates"},
		"a tolerated NoExecute taint": {taint: noExecute, tolerations: []corev1.Toleration{tolerated}, missing: []string{failover.FlagFailover},
			want: "ok TaintTolerated: has NoExecute taints, which the placement tolerates"},
		"a NoExecute taint that is tolerated for some time": {taint: noExecute,
			tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(600))}},
			want:        "ok TaintTolerated: has taint repair:NoExecute, which the placement tolerates until 2026-03-01T12:09:00Z"},
		"evictions are off": {taint: noExecute, missing: []string{failover.FlagNoExecute},
			want:   "failed EvictionDisabled: has taint repair:NoExecute, which the placement does not tolerate, but NoExecute taints evict no workloads in this control plane",
			remedy: "start karmada-controller-manager with --enable-no-execute-taint-eviction=true"},
		"evictions are on": {taint: noExecute, missing: []string{},
			want: "pending EvictionPending: has taint repair:NoExecute, which the placement does not tolerate: the object will be evicted"},
		"nothing is reported": {taint: noExecute,
			want:   "unknown EvictionUnreported: has taint repair:NoExecute, which the placement does not tolerate, and no controller reports whether such taints evict workloads",
			remedy: "check that karmada-controller-manager runs, and that its flag --controllers does not disable the controller cluster"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			facts := healthyFacts()
			facts.binding().Spec.Placement.ClusterTolerations = test.tolerations
			east := facts.Clusters.Value[0]
			east.Spec.Taints = []corev1.Taint{test.taint}
			if test.missing != nil {
				failover.SetTaintsEvict(east, test.missing, added)
			}
			links := newPipeline(&facts).diagnoseTaints()
			if len(links) != 1 || links[0].Cluster != "east" || links[0].Stage != StageSchedule {
				t.Fatalf("links %+v", links)
			}
			if diff := cmp.Diff(test.want, string(links[0].Result)+" "+links[0].Reason+": "+links[0].Message); diff != "" {
				t.Errorf("link (-want +got):\n%s", diff)
			}
			if links[0].Remedy != test.remedy {
				t.Errorf("remedy %q, want %q", links[0].Remedy, test.remedy)
			}
		})
	}
}
