package capacity

import (
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// HasGrown reports whether a workload that did not fit before may fit now, because more of a
// resource is free or a grade has more nodes.
func HasGrown(before, after *clusterv1alpha1.ResourceSummary) bool {
	if after == nil {
		return false
	}
	if before == nil {
		return true
	}
	for name := range after.Allocatable {
		if freeAmount(after, name) > freeAmount(before, name) {
			return true
		}
	}
	nodesBefore := make(map[uint]int, len(before.AllocatableModelings))
	for _, grade := range before.AllocatableModelings {
		nodesBefore[grade.Grade] = grade.Count
	}
	for _, grade := range after.AllocatableModelings {
		if grade.Count > nodesBefore[grade.Grade] {
			return true
		}
	}
	return len(after.AllocatableModelings) == 0 && len(before.AllocatableModelings) > 0
}
