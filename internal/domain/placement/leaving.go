package placement

import (
	"fmt"
	"slices"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
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
	if placement.ClusterAffinity != nil || len(placement.ClusterAffinities) == 0 {
		return Matches(cluster, placement.ClusterAffinity)
	}
	return slices.ContainsFunc(placement.ClusterAffinities, func(group policyv1alpha1.ClusterAffinityTerm) bool {
		return Matches(cluster, &group.ClusterAffinity) ||
			slices.ContainsFunc(group.OverflowAffinities, func(overflow policyv1alpha1.OverflowAffinityTerm) bool {
				return Matches(cluster, &overflow.ClusterAffinity)
			})
	})
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
