package reconnect

import (
	"context"
	"strings"
	"sync"
	"time"
)

// outageTracker holds the current outage of one server.
type outageTracker struct {
	mu      sync.Mutex
	current *outage
}

// groupOutages holds the outages of the servers behind one address, by API group.
type groupOutages struct {
	mu      sync.Mutex
	outages map[string]*outageTracker
}

// of returns the tracker for the API group of a path. Paths without an API group share one
// tracker.
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

// outage is one outage. A request that waits for its end is either the one that tries next, or
// is notified.
type outage struct {
	since time.Time
	ended chan struct{}
	turn  chan struct{}
}

// getOrBegin returns the current outage, and whether it has just begun.
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

// end ends the outage, if there is one, and returns how long it took.
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

// await returns true when the caller may try: the outage is over, or it is the caller's turn
// after a pause. The caller must then call releaseTurn. It returns false if ctx ends first or
// closed is closed.
func (o *outage) await(ctx context.Context, closed <-chan struct{}, pause time.Duration) bool {
	select {
	case <-closed:
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
	case <-closed:
	case <-ctx.Done():
	}
	o.releaseTurn()
	return false
}

// releaseTurn gives the turn to the next request. A request that was notified of the end may
// call it without having the turn.
func (o *outage) releaseTurn() {
	select {
	case o.turn <- struct{}{}:
	default:
	}
}
