package member

import (
	"net/http"
	"slices"
	"sync"
)

// healthState is the last observed health of a member.
type healthState int

const (
	healthUnknown healthState = iota
	healthy
	unhealthy
)

// healthTracker tracks the health of one member. Every request without a response makes the member
// unhealthy. Only a successful probe makes the member healthy, because a starting API server
// responds to requests before it is ready.
type healthTracker struct {
	member string
	// onUnhealthy and onRecovered are called when the health of the member changes.
	onUnhealthy, onRecovered func(member string)

	mu    sync.Mutex
	state healthState
}

// setHealthy records that the member is healthy.
func (h *healthTracker) setHealthy() {
	if h.swapState(healthy) == unhealthy {
		h.onRecovered(h.member)
	}
}

// setUnhealthy records that the member does not respond, or reports that it is unhealthy.
func (h *healthTracker) setUnhealthy() {
	if h.swapState(unhealthy) != unhealthy {
		h.onUnhealthy(h.member)
	}
}

func (h *healthTracker) swapState(now healthState) (previous healthState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	previous, h.state = h.state, now
	return previous
}

func (h *healthTracker) hasState(wanted healthState) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state == wanted
}

// trackFailures returns a transport that records requests without a response. It ignores a request
// that its sender canceled, because such a request does not show that the member is unhealthy.
func trackFailures(next http.RoundTripper, l *healthTracker) http.RoundTripper {
	return roundTripper{next: next, roundTrip: func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil && request.Context().Err() == nil {
			l.setUnhealthy()
		}
		return response, err
	}}
}

// OnUnhealthy makes Clusters call notify with the name of each member that becomes unhealthy. It
// must be called before the first Get. notify must return quickly.
func (c *Clusters) OnUnhealthy(notify func(name string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onUnhealthy = append(c.onUnhealthy, notify)
}

// OnRecovery makes Clusters call notify with the name of each member that becomes healthy again, as
// soon as a probe succeeds. It must be called before the first Get. notify must return quickly.
func (c *Clusters) OnRecovery(notify func(name string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onRecovery = append(c.onRecovery, notify)
}

// IsHealthy reports whether the last probe of the member succeeded and every later request got an
// response.
func (c *Clusters) IsHealthy(name string) bool {
	c.mu.Lock()
	e, ok := c.entries[name]
	c.mu.Unlock()
	return ok && e.health.hasState(healthy)
}

func (c *Clusters) newHealthTracker(name string) *healthTracker {
	notifyAll := func(callbacks []func(string)) func(string) {
		return func(name string) {
			for _, notify := range callbacks {
				notify(name)
			}
		}
	}
	onRecovery := append(slices.Clone(c.onRecovery), c.watches.Retry)
	return &healthTracker{member: name, onUnhealthy: notifyAll(c.onUnhealthy), onRecovered: notifyAll(onRecovery)}
}
