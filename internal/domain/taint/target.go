package taint

import (
	"maps"
	"slices"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// sameTarget tells that the same policies target both states of a cluster: they
// select by labels, by fields and by name.
func sameTarget(older, newer *clusterv1alpha1.Cluster) bool {
	return maps.Equal(older.Labels, newer.Labels) &&
		older.Spec.Provider == newer.Spec.Provider && older.Spec.Region == newer.Spec.Region &&
		older.Spec.Zone == newer.Spec.Zone && slices.Equal(older.Spec.Zones, newer.Spec.Zones)
}
