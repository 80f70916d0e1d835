package scheduler

import (
	"maps"
	"slices"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/capacity"
)

// concernsPlacements tells whether a change of a cluster may change where bindings
// go: it is leaving, it is described or tainted differently, or it serves other
// APIs. Clusters report their status often, so this must be cheap.
func concernsPlacements(before, after *clusterv1alpha1.Cluster) bool {
	return (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		before.Generation != after.Generation ||
		before.UID != after.UID ||
		!maps.Equal(before.Labels, after.Labels) ||
		!slices.EqualFunc(before.Status.APIEnablements, after.Status.APIEnablements, sameAPI)
}

func sameAPI(a, b clusterv1alpha1.APIEnablement) bool {
	return a.GroupVersion == b.GroupVersion && slices.Equal(a.Resources, b.Resources)
}

// hasMoreRoom tells whether something that did not fit into the cluster before may
// fit now.
func hasMoreRoom(before, after *clusterv1alpha1.Cluster) bool {
	return before.UID != after.UID || before.Generation != after.Generation ||
		capacity.HasGrown(before.Status.ResourceSummary, after.Status.ResourceSummary)
}
