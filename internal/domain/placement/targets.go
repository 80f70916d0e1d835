package placement

import (
	"fmt"
	"slices"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// WithoutTerminatingClusters returns the targets whose cluster is not terminating. A target
// whose cluster is unknown stays, because the cache may be behind. The passed slice is not
// modified.
func WithoutTerminatingClusters(targets []workv1alpha2.TargetCluster, clusters ClusterLookup) []workv1alpha2.TargetCluster {
	return slices.DeleteFunc(slices.Clone(targets), clusters.isTerminating)
}

// isTerminating reports whether the cluster of the target has a deletion timestamp.
func (l ClusterLookup) isTerminating(target workv1alpha2.TargetCluster) bool {
	cluster := l(target.Name)
	return cluster != nil && cluster.DeletionTimestamp != nil
}

// Selects reports whether the affinity of the placement, or one of its affinity groups or
// overflow groups, selects the cluster.
func Selects(placement *policyv1alpha1.Placement, cluster *clusterv1alpha1.Cluster) bool {
	return slices.ContainsFunc(Affinities(placement), func(affinity *policyv1alpha1.ClusterAffinity) bool { return Matches(cluster, affinity) })
}

// SelectsWithActiveGroup reports whether the affinity in use for a binding selects the cluster.
// That is the affinity of the placement, or of the affinity group in the status with its
// overflow groups. A group that the placement does not have selects no cluster. The spec must
// have a placement.
func SelectsWithActiveGroup(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus, cluster *clusterv1alpha1.Cluster) bool {
	if spec.Placement.ClusterAffinity != nil || len(spec.Placement.ClusterAffinities) == 0 {
		return Matches(cluster, spec.Placement.ClusterAffinity)
	}
	return slices.ContainsFunc(spec.Placement.ClusterAffinities, func(group policyv1alpha1.ClusterAffinityTerm) bool {
		return group.AffinityName == status.SchedulerObservedAffinityName &&
			slices.ContainsFunc(groupAffinities(&group, binding.IsWorkload(spec)), func(affinity *policyv1alpha1.ClusterAffinity) bool {
				return Matches(cluster, affinity)
			})
	})
}

// Affinities returns all affinities of a placement: the single affinity, which is nil if it
// selects every cluster, or the affinities of all affinity groups and overflow groups.
func Affinities(placement *policyv1alpha1.Placement) []*policyv1alpha1.ClusterAffinity {
	if placement.ClusterAffinity != nil || len(placement.ClusterAffinities) == 0 {
		return []*policyv1alpha1.ClusterAffinity{placement.ClusterAffinity}
	}
	var all []*policyv1alpha1.ClusterAffinity
	for i := range placement.ClusterAffinities {
		all = append(all, groupAffinities(&placement.ClusterAffinities[i], true)...)
	}
	return all
}

// groupAffinities returns the affinity of a group and, if withOverflow is set, those of its
// overflow groups. Overflow applies to replicas only: templates without replicas stay in the
// group.
func groupAffinities(group *policyv1alpha1.ClusterAffinityTerm, withOverflow bool) []*policyv1alpha1.ClusterAffinity {
	all := []*policyv1alpha1.ClusterAffinity{&group.ClusterAffinity}
	for i := range group.OverflowAffinities {
		if withOverflow {
			all = append(all, &group.OverflowAffinities[i].ClusterAffinity)
		}
	}
	return all
}

// DescribeShortfall describes how many of the requested replicas the targets of a binding hold, or that
// the binding has no target. It returns an empty string if no replica is missing.
func DescribeShortfall(spec *workv1alpha2.ResourceBindingSpec) string {
	if len(spec.Clusters) == 0 {
		return "It has no cluster left."
	}
	if !HasReplicas(spec) || spec.Placement == nil || isDuplicated(spec.Placement) {
		return ""
	}
	placed := int64(0)
	for i := range spec.Clusters {
		placed = addSaturated(placed, int64(spec.Clusters[i].Replicas))
	}
	if placed >= int64(spec.Replicas) {
		return ""
	}
	return fmt.Sprintf("%d of %d replicas are placed: {%s}.", placed, spec.Replicas, DescribeTargets(spec))
}

// DescribeTargets lists the targets of a binding as cluster:replicas, or by name only if the
// kind has no replicas.
func DescribeTargets(spec *workv1alpha2.ResourceBindingSpec) string {
	texts := make([]string, len(spec.Clusters))
	for i := range spec.Clusters {
		texts[i] = spec.Clusters[i].Name
		if HasReplicas(spec) {
			texts[i] = fmt.Sprintf("%s:%d", spec.Clusters[i].Name, spec.Clusters[i].Replicas)
		}
	}
	return joinBounded(texts)
}
