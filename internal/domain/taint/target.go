package taint

import (
	"maps"
	"slices"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// sameSelectorFields reports whether the same policies select both states of the cluster. Policies
// select clusters by labels, fields and name.
func sameSelectorFields(older, newer *clusterv1alpha1.Cluster) bool {
	return maps.Equal(older.Labels, newer.Labels) &&
		older.Spec.Provider == newer.Spec.Provider && older.Spec.Region == newer.Spec.Region &&
		older.Spec.Zone == newer.Spec.Zone && slices.Equal(older.Spec.Zones, newer.Spec.Zones)
}
