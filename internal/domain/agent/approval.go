package agent

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// RequireApproval adds the taint that keeps workloads away from a Cluster that an agent creates. The
// agent cannot change the taints of its Cluster later, so only an administrator removes the taint.
func RequireApproval(created *clusterv1alpha1.Cluster) {
	required := corev1.Taint{Key: clusterv1alpha1.TaintClusterUnapproved, Effect: corev1.TaintEffectNoSchedule}
	taints := slices.DeleteFunc(slices.Clone(created.Spec.Taints), func(taint corev1.Taint) bool { return taint.MatchTaint(&required) })
	taints = append(taints, required)
	created.Spec.Taints = taints
}
