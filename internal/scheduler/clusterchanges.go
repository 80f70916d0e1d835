package scheduler

import (
	"maps"
	"slices"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/capacity"
)

// affectsPlacements reports whether a change of a cluster may change the targets of bindings: the
// cluster started to terminate, its spec or labels changed, or it serves other APIs. This function
// must be cheap, because clusters report their status often.
func affectsPlacements(before, after *clusterv1alpha1.Cluster) bool {
	return (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		before.Generation != after.Generation ||
		before.UID != after.UID ||
		!maps.Equal(before.Labels, after.Labels) ||
		!slices.EqualFunc(before.Status.APIEnablements, after.Status.APIEnablements, sameAPI)
}

func sameAPI(a, b clusterv1alpha1.APIEnablement) bool {
	return a.GroupVersion == b.GroupVersion && slices.Equal(a.Resources, b.Resources)
}

// mayHaveMoreCapacity reports whether a workload that did not fit before may fit into the
// cluster now.
func mayHaveMoreCapacity(before, after *clusterv1alpha1.Cluster) bool {
	return before.UID != after.UID || before.Generation != after.Generation ||
		capacity.HasGrown(before.Status.ResourceSummary, after.Status.ResourceSummary)
}
