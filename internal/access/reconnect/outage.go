package reconnect

import (
	"context"
	"strings"
	"sync"
	"time"
)

// outageTracker are the times in which one server does not answer.
type outageTracker struct {
	mu  sync.Mutex
	current *outage
}

// groupOutages are the outages of the servers behind one, by API group.
type groupOutages struct {
	mu      sync.Mutex
	outages map[string]*outageTracker
}

// of returns the outages of the API group that a path leads to. What is none is one
// of its own.
func (g *groupOutages) of(path string) *outageTracker {
	name := ""
	if _, after, grouped := strings.Cut(path, "/apis/"); grouped {
		name, _, _ = strings.Cut(after, "/")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.outages == nil {
		g.outages = map[string]*outageTracker{}
	}
	if g.outages[name] == nil {
		g.outages[name] = &outageTracker{}
	}
	return g.outages[name]
}

// outage is one of them. Everybody who waits for its end either has the turn to
// try whether it has come, or is told.
type outage struct {
	since time.Time
	ended  chan struct{}
	turn  chan struct{}
}

// getOrBegin returns the outage that is, and whether it has just begun.
func (o *outageTracker) getOrBegin(now time.Time) (*outage, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current != nil {
		return o.current, false
	}
	o.current = &outage{since: now, ended: make(chan struct{}), turn: make(chan struct{}, 1)}
	o.current.turn <- struct{}{}
	return o.current, true
}

// end ends the outage, if there is one, and tells how long it took.
func (o *outageTracker) end(now time.Time) (took time.Duration, was bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current == nil {
		return 0, false
	}
	ended := o.current
	o.current = nil
	close(ended.ended)
	return now.Sub(ended.since), true
}

// await returns true when it is time to try: because the outage is over, or
// because it is the caller's turn after a pause, who must then say tried. It
// returns false when ctx ends before, or ended is closed.
func (o *outage) await(ctx context.Context, ended <-chan struct{}, pause time.Duration) bool {
	select {
	case <-ended:
		return false
	case <-o.ended:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	case <-o.turn:
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-o.ended:
		return ctx.Err() == nil
	case <-ended:
	case <-ctx.Done():
	}
	o.releaseTurn()
	return false
}

// releaseTurn gives the turn to the next one. Somebody who was told of the end may say
// it without having had it.
func (o *outage) releaseTurn() {
	select {
	case o.turn <- struct{}{}:
	default:
	}
}
