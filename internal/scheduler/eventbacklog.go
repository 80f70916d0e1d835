package scheduler

import (
	"context"
	"sync"
	"time"
)

const (
	// busyQueueLength is the minimum number of waiting bindings for which events are deferred.
	busyQueueLength = 100
	// eventInterval and eventsPerInterval limit the rate of deferred events, because the recorder
	// drops events that it cannot send fast enough.
	eventInterval     = 100 * time.Millisecond
	eventsPerInterval = 20
	// maxEventDelay is the maximum delay of an event. A full backlog records its oldest events earlier.
	maxEventDelay     = 30 * time.Second
	maxDeferredEvents = 10_000
)

// eventBacklog defers events while many bindings wait to be scheduled, because recording an event costs
// the API server as much as writing a binding. A nil *eventBacklog defers nothing.
type eventBacklog struct {
	isBusy func() bool
	now    func() time.Time
	// added receives a value when an event is deferred.
	added chan struct{}

	mu      sync.Mutex
	pending []deferredEvent // oldest first
}

type deferredEvent struct {
	record func()
	at     time.Time
}

func newEventBacklog(isBusy func() bool, now func() time.Time) *eventBacklog {
	return &eventBacklog{isBusy: isBusy, now: now, added: make(chan struct{}, 1)}
}

// record calls the function immediately or later. The functions are called in order.
func (e *eventBacklog) record(record func()) {
	if e == nil || !e.shouldDefer(record) {
		record()
	}
}

// shouldDefer stores the event and returns true if it must be recorded later.
func (e *eventBacklog) shouldDefer(record func()) bool {
	isBusy := e.isBusy()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !isBusy && len(e.pending) == 0 {
		return false
	}
	e.pending = append(e.pending, deferredEvent{record: record, at: e.now()})
	select {
	case e.added <- struct{}{}:
	default: // run has not processed the previous notification yet
	}
	return true
}

// run records the deferred events until ctx is canceled. Events that are still deferred then are lost,
// like events that the recorder has not sent yet.
func (e *eventBacklog) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.added:
		}
		for e.recordDue() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(eventInterval):
			}
		}
	}
}

// recordDue records the events that are due in this interval, and reports whether events are still
// deferred.
func (e *eventBacklog) recordDue() (more bool) {
	due, more := e.takeDue()
	for _, event := range due {
		event.record()
	}
	return more
}

func (e *eventBacklog) takeDue() (due []deferredEvent, more bool) {
	isBusy := e.isBusy()
	e.mu.Lock()
	defer e.mu.Unlock()
	excess := len(e.pending) - maxDeferredEvents
	for len(due) < min(max(eventsPerInterval, excess), len(e.pending)) {
		oldest := e.pending[len(due)]
		isOverdue := e.now().Sub(oldest.at) >= maxEventDelay || len(due) < excess
		if isBusy && !isOverdue {
			break
		}
		due = append(due, oldest)
	}
	e.pending = e.pending[len(due):]
	if len(e.pending) == 0 {
		e.pending = nil
	}
	return due, len(e.pending) > 0
}
