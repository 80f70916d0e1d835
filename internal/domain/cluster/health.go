package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// IsReady reports whether the cluster's condition Ready is True.
func IsReady(cluster *clusterv1alpha1.Cluster) bool {
	return conditions.HasStatus(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue)
}

// HealthTaints returns the cluster's taints according to its condition Ready: it adds the taint
// not-ready if the condition is False or missing, adds unreachable if it is Unknown, and removes both
// if it is True. All other taints stay. A new taint gets the given time.
func HealthTaints(cluster *clusterv1alpha1.Cluster, now metav1.Time) []corev1.Taint {
	wantedKey := ""
	ready := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	switch {
	case ready == nil || ready.Status == metav1.ConditionFalse:
		wantedKey = clusterv1alpha1.TaintClusterNotReady
	case ready.Status == metav1.ConditionUnknown:
		wantedKey = clusterv1alpha1.TaintClusterUnreachable
	}
	taints := slices.DeleteFunc(slices.Clone(cluster.Spec.Taints), func(taint corev1.Taint) bool {
		isHealthTaint := taint.Key == clusterv1alpha1.TaintClusterNotReady || taint.Key == clusterv1alpha1.TaintClusterUnreachable
		return isHealthTaint && taint.Effect == corev1.TaintEffectNoSchedule && taint.Key != wantedKey
	})
	present := slices.ContainsFunc(taints, func(taint corev1.Taint) bool {
		return taint.Key == wantedKey && taint.Effect == corev1.TaintEffectNoSchedule
	})
	if wantedKey == "" || present {
		return taints
	}
	return append(taints, corev1.Taint{Key: wantedKey, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now})
}
