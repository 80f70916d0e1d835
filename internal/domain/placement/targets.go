package placement

import (
	"fmt"
	"slices"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// WithoutTerminatingClusters returns the targets whose cluster is not terminating. A target
// whose cluster is unknown stays, because the cache may be behind. The passed slice is not
// modified.
func WithoutTerminatingClusters(targets []workv1alpha2.TargetCluster, clusters ClusterLookup) []workv1alpha2.TargetCluster {
	return slices.DeleteFunc(slices.Clone(targets), clusters.isTerminating)
}

// isTerminating reports whether the cluster of the target has a deletion timestamp.
func (c ClusterLookup) isTerminating(target workv1alpha2.TargetCluster) bool {
	cluster := c(target.Name)
	return cluster != nil && cluster.DeletionTimestamp != nil
}

// DescribeShortfall describes how many of the requested replicas the targets of a binding have, or
// that the binding has no target. It returns an empty string if no replica is missing.
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

// DescribeTargets returns the targets of a binding as a list of cluster:replicas. If the kind has
// no replicas, it returns only the names.
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
