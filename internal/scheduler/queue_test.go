package scheduler

import (
	"testing"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestALowerPriorityNeverGoesBeforeAHigherOne(t *testing.T) {
	s := &scheduler{options: Options{PriorityScheduling: true}}
	place := func(priority int32, u urgency) int {
		bound := &workv1alpha2.ResourceBinding{}
		bound.Spec.SchedulePriority = &workv1alpha2.SchedulePriority{Priority: priority}
		return *s.priority(bound, u)
	}
	for _, low := range []int32{-1_000_000_000, -1, 0, 1, 1_000_000_000} {
		if one, other := place(low, live), place(low+1, background); one >= other {
			t.Errorf("a live change of priority %d is at %d, and background work of %d at %d", low, one, low+1, other)
		}
		if one, other := place(low, background), place(low, live); one >= other {
			t.Errorf("background work of priority %d is at %d, and a live change at %d", low, one, other)
		}
	}
}
