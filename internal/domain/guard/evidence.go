package guard

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/toleration"
)

// Asked tells whether users changed, from before to after, what decides in which
// clusters a binding is, or an eviction came to its end: that its old copy goes then
// was decided long before.
func Asked(before, after *workv1alpha2.ResourceBindingSpec) bool {
	return before.Replicas != after.Replicas ||
		!equality.Semantic.DeepEqual(before.Placement, after.Placement) ||
		!equality.Semantic.DeepEqual(before.Components, after.Components) ||
		!equality.Semantic.DeepEqual(before.RescheduleTriggeredAt, after.RescheduleTriggeredAt) ||
		slices.ContainsFunc(before.GracefulEvictionTasks, func(task workv1alpha2.GracefulEvictionTask) bool {
			return !evicting(after, task.FromCluster)
		})
}

func evicting(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	return slices.ContainsFunc(spec.GracefulEvictionTasks, func(task workv1alpha2.GracefulEvictionTask) bool {
		return task.FromCluster == cluster
	})
}

// Excluded tells whether the cluster is out of question for a binding by what
// users say: no affinity of the placement selects it, a taint that the placement does
// not tolerate for good drives work out of it, or the binding is being evicted from
// it. A binding without a placement follows others and excludes nothing.
func Excluded(cluster *clusterv1alpha1.Cluster, spec *workv1alpha2.ResourceBindingSpec) bool {
	var tolerations []corev1.Toleration
	if spec.Placement != nil {
		tolerations = spec.Placement.ClusterTolerations
	}
	if toleration.InFor(cluster.Spec.Taints, tolerations).Taint != nil || evicting(spec, cluster.Name) {
		return true
	}
	if spec.Placement == nil {
		return false
	}
	if len(spec.Placement.ClusterAffinities) == 0 {
		return !placement.Matches(cluster, spec.Placement.ClusterAffinity)
	}
	for i := range spec.Placement.ClusterAffinities {
		if placement.Matches(cluster, &spec.Placement.ClusterAffinities[i].ClusterAffinity) {
			return false
		}
	}
	return true
}
