package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// Ready tells whether a cluster says of itself that it is ready.
func Ready(cluster *clusterv1alpha1.Cluster) bool {
	return conditions.Is(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue)
}

// HealthTaints are the taints of a cluster after its condition Ready was taken
// into account: not-ready when it is False or nobody has looked yet, unreachable
// when it is Unknown, neither when it is True. The two exclude each other; all
// other taints stay. A new taint bears the time given.
func HealthTaints(cluster *clusterv1alpha1.Cluster, now metav1.Time) []corev1.Taint {
	wanted := ""
	ready := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	switch {
	case ready == nil || ready.Status == metav1.ConditionFalse:
		wanted = clusterv1alpha1.TaintClusterNotReady
	case ready.Status == metav1.ConditionUnknown:
		wanted = clusterv1alpha1.TaintClusterUnreachable
	}
	taints := slices.DeleteFunc(slices.Clone(cluster.Spec.Taints), func(taint corev1.Taint) bool {
		ours := taint.Key == clusterv1alpha1.TaintClusterNotReady || taint.Key == clusterv1alpha1.TaintClusterUnreachable
		return ours && taint.Effect == corev1.TaintEffectNoSchedule && taint.Key != wanted
	})
	present := slices.ContainsFunc(taints, func(taint corev1.Taint) bool {
		return taint.Key == wanted && taint.Effect == corev1.TaintEffectNoSchedule
	})
	if wanted == "" || present {
		return taints
	}
	return append(taints, corev1.Taint{Key: wanted, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now})
}
