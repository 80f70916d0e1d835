package placement

import (
	"fmt"
	"slices"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// WithoutLeaving returns the targets without those whose cluster is being removed.
// A target whose cluster is not known stays: the cache may be behind. The targets
// passed in are not changed.
func WithoutLeaving(targets []workv1alpha2.TargetCluster, clusters Lookup) []workv1alpha2.TargetCluster {
	return slices.DeleteFunc(slices.Clone(targets), clusters.leaving)
}

// leaving reports whether the cluster of the target is being removed.
func (l Lookup) leaving(target workv1alpha2.TargetCluster) bool {
	cluster := l(target.Name)
	return cluster != nil && cluster.DeletionTimestamp != nil
}

// Selects reports whether the affinity of the placement, or one of its affinity
// groups or overflow groups, selects the cluster.
func Selects(placement *policyv1alpha1.Placement, cluster *clusterv1alpha1.Cluster) bool {
	return slices.ContainsFunc(Affinities(placement), func(affinity *policyv1alpha1.ClusterAffinity) bool { return Matches(cluster, affinity) })
}

// SelectsNow reports whether the affinity that is in use for a binding with a placement
// selects the cluster: that of the placement, or that of its affinity group by the status
// and of the overflow groups behind it. A group that the placement does not have selects
// no cluster.
func SelectsNow(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus, cluster *clusterv1alpha1.Cluster) bool {
	if spec.Placement.ClusterAffinity != nil || len(spec.Placement.ClusterAffinities) == 0 {
		return Matches(cluster, spec.Placement.ClusterAffinity)
	}
	return slices.ContainsFunc(spec.Placement.ClusterAffinities, func(group policyv1alpha1.ClusterAffinityTerm) bool {
		return group.AffinityName == status.SchedulerObservedAffinityName &&
			slices.ContainsFunc(affinitiesOf(&group, binding.IsWorkload(spec)), func(affinity *policyv1alpha1.ClusterAffinity) bool {
				return Matches(cluster, affinity)
			})
	})
}

// Affinities are all that a placement has: its own, which is nil if it selects every
// cluster, or those of its affinity groups and overflow groups.
func Affinities(placement *policyv1alpha1.Placement) []*policyv1alpha1.ClusterAffinity {
	if placement.ClusterAffinity != nil || len(placement.ClusterAffinities) == 0 {
		return []*policyv1alpha1.ClusterAffinity{placement.ClusterAffinity}
	}
	var all []*policyv1alpha1.ClusterAffinity
	for i := range placement.ClusterAffinities {
		all = append(all, affinitiesOf(&placement.ClusterAffinities[i], true)...)
	}
	return all
}

// affinitiesOf are the affinity of a group and those of its overflow groups. Overflow is
// for replicas: templates without replicas stay in the group.
func affinitiesOf(group *policyv1alpha1.ClusterAffinityTerm, overflows bool) []*policyv1alpha1.ClusterAffinity {
	all := []*policyv1alpha1.ClusterAffinity{&group.ClusterAffinity}
	for i := range group.OverflowAffinities {
		if overflows {
			all = append(all, &group.OverflowAffinities[i].ClusterAffinity)
		}
	}
	return all
}

// Shortfall says how many replicas fewer than wanted the targets of a binding hold,
// or that it has no target; empty if nothing is lacking.
func Shortfall(spec *workv1alpha2.ResourceBindingSpec) string {
	if len(spec.Clusters) == 0 {
		return "It has no cluster left."
	}
	if !HasReplicas(spec) || spec.Placement == nil || duplicated(spec.Placement) {
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

// DescribeTargets lists the targets of a binding as cluster:replicas, or by name
// alone if the kind has no replicas.
func DescribeTargets(spec *workv1alpha2.ResourceBindingSpec) string {
	texts := make([]string, len(spec.Clusters))
	for i := range spec.Clusters {
		texts[i] = spec.Clusters[i].Name
		if HasReplicas(spec) {
			texts[i] = fmt.Sprintf("%s:%d", spec.Clusters[i].Name, spec.Clusters[i].Replicas)
		}
	}
	return listed(texts)
}
