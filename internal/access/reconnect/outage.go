package reconnect

import (
	"context"
	"strings"
	"sync"
	"time"
)

// outageTracker tracks the current outage of one server.
type outageTracker struct {
	mu      sync.Mutex
	current *outage
}

// groupOutages tracks the outages of the servers behind one address, by API group.
type groupOutages struct {
	mu      sync.Mutex
	outages map[string]*outageTracker
}

// of returns the outage tracker for the API group of a path. All paths without an API group share
// one tracker.
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

// outage is one outage of a server. Of all requests that wait for its end, one has the turn and
// retries. The others are notified when the outage ends.
type outage struct {
	since time.Time
	ended chan struct{}
	turn  chan struct{}
}

// getOrBegin returns the current outage, or begins one. It reports whether the outage has just
// begun.
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

// end ends the current outage, if there is one, and returns how long the outage lasted.
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

// await waits until the caller may retry, and returns true: the outage is over, or the pause has
// passed and the caller has the turn. The caller must then call releaseTurn. It returns false if
// ctx ends or closed is closed before.
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

// releaseTurn gives the turn to the next request. A request that was notified of the end of the
// outage may call it without having the turn.
func (o *outage) releaseTurn() {
	select {
	case o.turn <- struct{}{}:
	default:
	}
}
