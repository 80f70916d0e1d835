package admission

import (
	"sync"
	"time"
)

const (
	// trust is the time for which an answer holds that has what is looked for.
	trust = time.Minute
	// askAgain is the least time between two questions because of something that the
	// last answer lacks; askAfterFailure the one after a question without an answer.
	askAgain        = 200 * time.Millisecond
	askAfterFailure = 5 * time.Second
	// patience bounds how long a request waits for an answer: an object is stored
	// without a warning rather than late.
	patience = 500 * time.Millisecond
)

// remembered holds the answer of the control plane to one question. One question
// at most is under way.
type remembered[T any] struct {
	ask func() (T, error)

	mu     sync.Mutex
	answer T
	known  bool
	asked  time.Time
	// done is closed when the question that is under way has its answer; nil when
	// none is.
	done chan struct{}
}

// get returns the answer, and false when there is none in time. It asks anew when
// the answer is old or does not satisfy the caller. An old one that satisfies is
// returned at once: the next caller gets the new one.
func (r *remembered[T]) get(satisfies func(T) bool) (answer T, known bool) {
	r.mu.Lock()
	if r.needed(satisfies) && r.done == nil {
		r.done = make(chan struct{})
		go r.renew(r.done)
	}
	if r.known && satisfies(r.answer) {
		defer r.mu.Unlock()
		return r.answer, true
	}
	done := r.done
	r.mu.Unlock()
	if done != nil {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			return answer, false
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answer, r.known
}

// needed reports whether to ask. The caller holds the lock.
func (r *remembered[T]) needed(satisfies func(T) bool) bool {
	age := time.Since(r.asked)
	switch {
	case r.asked.IsZero(), age >= trust:
		return true
	case !r.known:
		return age >= askAfterFailure
	default:
		return age >= askAgain && !satisfies(r.answer)
	}
}

func (r *remembered[T]) renew(done chan struct{}) {
	answer, err := r.ask()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer, r.known, r.asked, r.done = answer, err == nil, time.Now(), nil
	close(done)
}
