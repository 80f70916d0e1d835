package scheduler

import (
	"testing"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestPriorityTakesPrecedenceOverUrgency(t *testing.T) {
	s := &scheduler{options: Options{PriorityScheduling: true}}
	place := func(priority int32, u urgency) int {
		bound := &workv1alpha2.ResourceBinding{}
		bound.Spec.SchedulePriority = &workv1alpha2.SchedulePriority{Priority: priority}
		return *s.priority(bound, u)
	}
	for _, low := range []int32{-1_000_000_000, -1, 0, 1, 1_000_000_000} {
		if one, other := place(low, urgencyLive), place(low+1, urgencyBackground); one >= other {
			t.Errorf("a live change with priority %d is at %d, and background work with %d at %d", low, one, low+1, other)
		}
		if one, other := place(low, urgencyBackground), place(low, urgencyLive); one >= other {
			t.Errorf("background work of priority %d is at %d, and a live change at %d", low, one, other)
		}
	}
}
