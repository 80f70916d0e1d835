package guard

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/clusteraffinity"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/toleration"
)

func isEvicting(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	return slices.ContainsFunc(spec.GracefulEvictionTasks, func(task workv1alpha2.GracefulEvictionTask) bool {
		return task.FromCluster == cluster
	})
}

// IsExcluded reports whether users exclude the cluster for a binding. This is the case if every
// affinity of the placement excludes the cluster by name, if the cluster has a NoExecute taint that
// the placement does not tolerate at the given time, or if the binding is being evicted from the
// cluster. A binding without a placement follows its dependents and excludes no cluster by
// affinity.
//
// Labels, provider, region and zones of the cluster are ignored, because they may be changed by a
// mistake that has nothing to do with workloads, and one such change may remove all workloads from
// the cluster.
func IsExcluded(cluster *clusterv1alpha1.Cluster, spec *workv1alpha2.ResourceBindingSpec, now time.Time) bool {
	var tolerations []corev1.Toleration
	if spec.Placement != nil {
		tolerations = spec.Placement.ClusterTolerations
	}
	return toleration.EvictionDeadline(cluster.Spec.Taints, tolerations).IsOver(now) || isEvicting(spec, cluster.Name) ||
		spec.Placement != nil && !slices.ContainsFunc(clusteraffinity.All(spec.Placement), func(affinity *policyv1alpha1.ClusterAffinity) bool {
			return selectsByName(affinity, cluster)
		})
}

// IsUnmatched reports whether the labels, provider, region or zones of the cluster may be the
// reason why the cluster is excluded for a binding. This is the case if the cluster lacks a field
// that a spread constraint of the placement requires. It is also the case if the affinity in use
// does not select the cluster, but an affinity of the placement would select the cluster by names
// alone. Every affinity of the placement is checked, because the binding may have left the affinity
// group of the cluster.
func IsUnmatched(cluster *clusterv1alpha1.Cluster, spec *workv1alpha2.ResourceBindingSpec,
	status *workv1alpha2.ResourceBindingStatus) bool {
	if spec.Placement == nil {
		return false
	}
	if placement.MissingSpreadField(spec.Placement, cluster) != "" {
		return true
	}
	return !clusteraffinity.SelectsWithActiveGroup(spec, status, cluster) &&
		slices.ContainsFunc(clusteraffinity.All(spec.Placement), func(affinity *policyv1alpha1.ClusterAffinity) bool {
			return !clusteraffinity.Matches(cluster, affinity) && selectsByName(affinity, cluster)
		})
}

// selectsByName reports whether the cluster names and exclusions of an affinity select the
// cluster.
func selectsByName(affinity *policyv1alpha1.ClusterAffinity, cluster *clusterv1alpha1.Cluster) bool {
	return affinity == nil || clusteraffinity.Matches(cluster, &policyv1alpha1.ClusterAffinity{
		ClusterNames: affinity.ClusterNames, ExcludeClusters: affinity.ExcludeClusters,
	})
}
