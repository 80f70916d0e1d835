package member

import (
	"net/http"
	"sync"
)

// sign is what was seen of a member last.
type sign int

const (
	unseen sign = iota
	answering
	silent
)

// liveness is what is known of whether one member answers. Every request tells
// when it does not; only a probe tells that it does, for a server that starts
// answers before it is of use.
type liveness struct {
	member string
	// lost and recovered are told when the sign changes.
	lost, recovered func(member string)

	mu   sync.Mutex
	last sign
}

// answers notes that the member is healthy.
func (l *liveness) answers() {
	if l.note(answering) == silent {
		l.recovered(l.member)
	}
}

// fails notes that the member does not answer, or says that it is not healthy.
func (l *liveness) fails() {
	if l.note(silent) != silent {
		l.lost(l.member)
	}
}

func (l *liveness) note(now sign) (before sign) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, l.last = l.last, now
	return before
}

func (l *liveness) is(wanted sign) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last == wanted
}

// listening notes requests that get no answer. That their sender has given up says
// nothing of the member.
func listening(next http.RoundTripper, l *liveness) http.RoundTripper {
	return roundTripper{next: next, trip: func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil && request.Context().Err() == nil {
			l.fails()
		}
		return response, err
	}}
}

// OnLoss calls notify with the name of each member that stops to answer. It must be
// called before the first Get. notify must return quickly.
func (c *Clusters) OnLoss(notify func(name string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onLoss = append(c.onLoss, notify)
}

// OnRecovery calls notify with the name of each member that is healthy again after
// it was not, as soon as a probe sees it. It must be called before the first Get.
// notify must return quickly.
func (c *Clusters) OnRecovery(notify func(name string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onRecovery = append(c.onRecovery, notify)
}

// Answers tells that the member was healthy when it was probed last, and that no
// request failed to get an answer since.
func (c *Clusters) Answers(name string) bool {
	c.mu.Lock()
	e, ok := c.entries[name]
	c.mu.Unlock()
	return ok && e.liveness.is(answering)
}

func (c *Clusters) livenessOf(name string) *liveness {
	tell := func(whom []func(string)) func(string) {
		return func(name string) {
			for _, notify := range whom {
				notify(name)
			}
		}
	}
	return &liveness{member: name, lost: tell(c.onLoss), recovered: tell(c.onRecovery)}
}
