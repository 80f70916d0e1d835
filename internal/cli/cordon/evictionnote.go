package cordon

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

const (
	// reportTimeout limits how long the command waits until the control plane reports whether
	// NoExecute taints evict workloads.
	reportTimeout  = 5 * time.Second
	reportInterval = 200 * time.Millisecond
)

// evictionWarning returns a warning if the control plane does not evict workloads because of the
// NoExecute taint that the command set, or does not report whether it does. It returns an empty
// string if the command set no such taint.
func (t *taintCommand) evictionWarning(ctx context.Context, name string) string {
	if t.dryRun || !slices.ContainsFunc(t.changes.set, func(taint corev1.Taint) bool { return taint.Effect == corev1.TaintEffectNoExecute }) {
		return ""
	}
	var reported *metav1.Condition
	// The end of the time limit is no failure, because the taint is set.
	_ = wait.PollUntilContextTimeout(ctx, reportInterval, reportTimeout, true, func(ctx context.Context) (bool, error) {
		cluster, err := t.clusters.Get(ctx, name)
		if err != nil {
			return false, err
		}
		reported = conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionTaintsEvict)
		return reported != nil, nil
	})
	return describeEvictionReport(name, reported)
}

// describeEvictionReport returns the warning for a condition TaintsEvict, which may be nil.
func describeEvictionReport(name string, reported *metav1.Condition) string {
	switch {
	case reported == nil:
		return "the control plane has not reported whether NoExecute taints evict workloads: see the condition " +
			clusterv1alpha1.ClusterConditionTaintsEvict + " in kubectl describe cluster " + name + ", and check that karmada-controller-manager runs"
	case reported.Status == metav1.ConditionFalse:
		return reported.Message
	default:
		return ""
	}
}
