// Package cluster answers: what does a Cluster look like once the control plane has accepted
// it, and which Clusters does the control plane reject?
//
// Invariants:
//   - Default and Canonicalise are idempotent: a second pass does not change a Cluster, so
//     writing back what was read never increases its generation.
//   - What Default produces passes the checks of Validate on resource models.
//   - Nothing here reads a clock; the caller passes the time of a taint.
package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Default sets the standard grades of DefaultModels in a new Cluster without resource models,
// and brings given models into the form of StandardiseModels.
func Default(cluster *clusterv1alpha1.Cluster) {
	if len(cluster.Spec.ResourceModels) == 0 {
		cluster.Spec.ResourceModels = DefaultModels()
		return
	}
	cluster.Spec.ResourceModels = StandardiseModels(cluster.Spec.ResourceModels)
}

// Canonicalise brings fields that can be written in several ways into one form.
//
// A NoExecute taint without a time gets the current time, because tolerations are counted from
// it. The single zone of older clients moves into the list of zones. If both are given nothing
// moves, and Validate rejects the Cluster.
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
