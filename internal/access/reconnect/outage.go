package reconnect

import (
	"context"
	"strings"
	"sync"
	"time"
)

// outages are the times in which one server does not answer.
type outages struct {
	mu  sync.Mutex
	now *outage
}

// groups are the outages of the servers behind one, by API group.
type groups struct {
	mu      sync.Mutex
	outages map[string]*outages
}

// of returns the outages of the API group that a path leads to. What is none is one
// of its own.
func (g *groups) of(path string) *outages {
	name := ""
	if _, after, grouped := strings.Cut(path, "/apis/"); grouped {
		name, _, _ = strings.Cut(after, "/")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.outages == nil {
		g.outages = map[string]*outages{}
	}
	if g.outages[name] == nil {
		g.outages[name] = &outages{}
	}
	return g.outages[name]
}

// outage is one of them. Everybody who waits for its end either has the turn to
// try whether it has come, or is told.
type outage struct {
	since time.Time
	over  chan struct{}
	turn  chan struct{}
}

// begin returns the outage that is, and whether it has just begun.
func (o *outages) begin(now time.Time) (*outage, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now != nil {
		return o.now, false
	}
	o.now = &outage{since: now, over: make(chan struct{}), turn: make(chan struct{}, 1)}
	o.now.turn <- struct{}{}
	return o.now, true
}

// end ends the outage, if there is one, and tells how long it took.
func (o *outages) end(now time.Time) (took time.Duration, was bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now == nil {
		return 0, false
	}
	ended := o.now
	o.now = nil
	close(ended.over)
	return now.Sub(ended.since), true
}

// await returns true when it is time to try: because the outage is over, or
// because it is the caller's turn after a pause, who must then say tried. It
// returns false when ctx ends before, or ended is closed.
func (o *outage) await(ctx context.Context, ended <-chan struct{}, pause time.Duration) bool {
	select {
	case <-ended:
		return false
	case <-o.over:
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
	case <-o.over:
		return ctx.Err() == nil
	case <-ended:
	case <-ctx.Done():
	}
	o.tried()
	return false
}

// tried gives the turn to the next one. Somebody who was told of the end may say
// it without having had it.
func (o *outage) tried() {
	select {
	case o.turn <- struct{}{}:
	default:
	}
}
