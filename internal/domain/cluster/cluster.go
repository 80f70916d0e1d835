// Package cluster answers: what does a Cluster look like once the control plane
// has accepted it, and which Clusters does it refuse?
//
// Invariants:
//   - Default and Canonicalise are idempotent: a Cluster that went through them
//     once is not changed by a second pass, so that writing back what was read
//     never bumps a generation.
//   - What Default produces passes the checks of Validate on resource models.
//   - Nothing here reads a clock; the time of a taint is handed in.
package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Default gives a new Cluster without resource models the standard grades of
// DefaultModels, and brings given models into the form of StandardiseModels.
func Default(cluster *clusterv1alpha1.Cluster) {
	if len(cluster.Spec.ResourceModels) == 0 {
		cluster.Spec.ResourceModels = DefaultModels()
		return
	}
	cluster.Spec.ResourceModels = StandardiseModels(cluster.Spec.ResourceModels)
}

// Canonicalise brings fields that may be written in several ways into one.
//
// A NoExecute taint without a time is dated now, because tolerations are counted
// from there. The single zone of older clients moves into the list of zones; when
// both are given nothing moves, and Validate refuses the Cluster.
func Canonicalise(cluster *clusterv1alpha1.Cluster, now metav1.Time) {
	for i := range cluster.Spec.Taints {
		taint := &cluster.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectNoExecute && taint.TimeAdded.IsZero() {
			taint.TimeAdded = now.DeepCopy()
		}
	}
	if cluster.Spec.Zone != "" && len(cluster.Spec.Zones) == 0 {
		cluster.Spec.Zones = []string{cluster.Spec.Zone}
		cluster.Spec.Zone = ""
	}
}
