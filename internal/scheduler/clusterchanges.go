package scheduler

import (
	"maps"
	"slices"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/capacity"
)

// affectsPlacements reports whether the change of a cluster may change the targets of bindings: the
// cluster is being deleted, its spec or labels have changed, or it serves other APIs. It is called for
// each status update of a cluster, so it must be cheap.
func affectsPlacements(before, after *clusterv1alpha1.Cluster) bool {
	return (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		before.Generation != after.Generation ||
		before.UID != after.UID ||
		!maps.Equal(before.Labels, after.Labels) ||
		!slices.EqualFunc(before.Status.APIEnablements, after.Status.APIEnablements, isSameAPI)
}

func isSameAPI(a, b clusterv1alpha1.APIEnablement) bool {
	return a.GroupVersion == b.GroupVersion && slices.Equal(a.Resources, b.Resources)
}

// mayHaveMoreCapacity reports whether a workload that did not fit into the cluster before may fit now.
func mayHaveMoreCapacity(before, after *clusterv1alpha1.Cluster) bool {
	return before.UID != after.UID || before.Generation != after.Generation ||
		capacity.HasGrown(before.Status.ResourceSummary, after.Status.ResourceSummary)
}
