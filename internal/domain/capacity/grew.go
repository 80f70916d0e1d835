package capacity

import (
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Grew reports whether something that did not fit before may fit now: more is left
// of some resource, or there are more nodes of some grade.
func Grew(before, after *clusterv1alpha1.ResourceSummary) bool {
	if after == nil {
		return false
	}
	if before == nil {
		return true
	}
	for name := range after.Allocatable {
		if free(after, name) > free(before, name) {
			return true
		}
	}
	counted := make(map[uint]int, len(before.AllocatableModelings))
	for _, grade := range before.AllocatableModelings {
		counted[grade.Grade] = grade.Count
	}
	for _, grade := range after.AllocatableModelings {
		if grade.Count > counted[grade.Grade] {
			return true
		}
	}
	return len(after.AllocatableModelings) == 0 && len(before.AllocatableModelings) > 0
}
