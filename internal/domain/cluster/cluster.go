// Package cluster sets the defaults of Clusters, validates them, and computes their health, resources
// and API lists.
//
// Invariants:
//   - Default and Canonicalize are idempotent: a second call does not change a Cluster. So a client
//     that writes a Cluster back unchanged never increases its generation.
//   - The resource models that Default sets pass the checks of Validate.
//   - No function reads a clock. The caller passes the time.
package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Default sets DefaultModels in a new Cluster without resource models. Otherwise it standardizes the
// Cluster's models, see StandardizeModels.
func Default(cluster *clusterv1alpha1.Cluster) {
	if len(cluster.Spec.ResourceModels) == 0 {
		cluster.Spec.ResourceModels = DefaultModels()
		return
	}
	cluster.Spec.ResourceModels = StandardizeModels(cluster.Spec.ResourceModels)
}

// Canonicalize converts fields that can be written in several ways to one form.
//
// A NoExecute taint without a time gets the current time, because tolerationSeconds are counted from
// that time. The deprecated field zone, which older clients set, is moved into the list zones. If both
// fields are set, Canonicalize moves nothing and Validate rejects the Cluster.
func Canonicalize(cluster *clusterv1alpha1.Cluster, now metav1.Time) {
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
