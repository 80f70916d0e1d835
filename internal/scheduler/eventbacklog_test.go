package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testBacklog is an eventBacklog that writes the numbers of the recorded events to a list.
type testBacklog struct {
	*eventBacklog

	isBusy   bool
	time     time.Time
	recorded []int
}

func newTestBacklog(isBusy bool) *testBacklog {
	b := &testBacklog{isBusy: isBusy, time: noon.Time}
	b.eventBacklog = newEventBacklog(func() bool { return b.isBusy }, func() time.Time { return b.time })
	return b
}

func (b *testBacklog) add(from, to int) {
	for i := from; i < to; i++ {
		b.record(func() { b.recorded = append(b.recorded, i) })
	}
}

func (b *testBacklog) wantRecorded(t *testing.T, count int) {
	t.Helper()
	want := make([]int, count)
	for i := range want {
		want[i] = i
	}
	if diff := cmp.Diff(want, append([]int{}, b.recorded...)); diff != "" {
		t.Errorf("recorded events (-want +got):\n%s", diff)
	}
}

func TestEventsAreRecordedAtOnceWhileFewBindingsWait(t *testing.T) {
	b := newTestBacklog(false)
	b.add(0, 3)
	b.wantRecorded(t, 3)
}

func TestEventsAreDeferredWhileManyBindingsWait(t *testing.T) {
	b := newTestBacklog(true)
	b.add(0, eventsPerInterval+5)
	if !b.recordDue() {
		t.Error("no event is deferred")
	}
	b.wantRecorded(t, 0)
	b.isBusy = false
	b.recordDue()
	b.wantRecorded(t, eventsPerInterval)
	b.add(eventsPerInterval+5, eventsPerInterval+6) // must not overtake the deferred events
	b.wantRecorded(t, eventsPerInterval)
	if b.recordDue() {
		t.Error("events are still deferred")
	}
	b.wantRecorded(t, eventsPerInterval+6)
	b.add(eventsPerInterval+6, eventsPerInterval+7)
	b.wantRecorded(t, eventsPerInterval+7)
}

func TestOldEventsAreRecordedUnderLoad(t *testing.T) {
	b := newTestBacklog(true)
	b.add(0, 2)
	b.time = b.time.Add(maxEventDelay)
	b.add(2, 4)
	b.recordDue()
	b.wantRecorded(t, 2)
}

func TestNumberOfDeferredEventsIsBounded(t *testing.T) {
	b := newTestBacklog(true)
	b.add(0, maxDeferredEvents+3)
	b.recordDue()
	b.wantRecorded(t, 3)
	b.add(maxDeferredEvents+3, maxDeferredEvents+3+5*eventsPerInterval)
	b.recordDue()
	b.wantRecorded(t, 3+5*eventsPerInterval)
}
