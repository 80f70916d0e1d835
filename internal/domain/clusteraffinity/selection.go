package clusteraffinity

import (
	"slices"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// Selects reports whether the affinity of the placement, or one of its affinity groups or
// overflow groups, selects the cluster.
func Selects(placement *policyv1alpha1.Placement, cluster *clusterv1alpha1.Cluster) bool {
	return slices.ContainsFunc(All(placement), func(affinity *policyv1alpha1.ClusterAffinity) bool { return Matches(cluster, affinity) })
}

// SelectsWithActiveGroup reports whether the affinity that is in use for a binding selects the
// cluster. The affinity in use is the affinity of the placement, or the affinity group in the
// status with its overflow groups. If the placement does not have the group in the status, no
// cluster is selected. The spec must have a placement.
func SelectsWithActiveGroup(
	spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus, cluster *clusterv1alpha1.Cluster,
) bool {
	if spec.Placement.ClusterAffinity != nil || len(spec.Placement.ClusterAffinities) == 0 {
		return Matches(cluster, spec.Placement.ClusterAffinity)
	}
	return slices.ContainsFunc(spec.Placement.ClusterAffinities, func(group policyv1alpha1.ClusterAffinityTerm) bool {
		return group.AffinityName == status.SchedulerObservedAffinityName &&
			slices.ContainsFunc(OfGroup(&group, binding.IsWorkload(spec)), func(affinity *policyv1alpha1.ClusterAffinity) bool {
				return Matches(cluster, affinity)
			})
	})
}

// All returns all affinities of a placement: the single affinity, or the affinities of all affinity
// groups and overflow groups. A single affinity that is nil selects every cluster.
func All(placement *policyv1alpha1.Placement) []*policyv1alpha1.ClusterAffinity {
	if placement.ClusterAffinity != nil || len(placement.ClusterAffinities) == 0 {
		return []*policyv1alpha1.ClusterAffinity{placement.ClusterAffinity}
	}
	var all []*policyv1alpha1.ClusterAffinity
	for i := range placement.ClusterAffinities {
		all = append(all, OfGroup(&placement.ClusterAffinities[i], true)...)
	}
	return all
}

// OfGroup returns the affinity of a group. If withOverflow is true, it also returns the affinities
// of the overflow groups. Overflow applies only to replicas, so templates without replicas stay in
// the group.
func OfGroup(group *policyv1alpha1.ClusterAffinityTerm, withOverflow bool) []*policyv1alpha1.ClusterAffinity {
	all := []*policyv1alpha1.ClusterAffinity{&group.ClusterAffinity}
	for i := range group.OverflowAffinities {
		if withOverflow {
			all = append(all, &group.OverflowAffinities[i].ClusterAffinity)
		}
	}
	return all
}
