package admission

import (
	"sync"
	"time"
)

const (
	// maxAge is how long a value that satisfies the callers is used without a refresh.
	maxAge = time.Minute
	// refreshDelay is the minimum time between two refreshes if the value does not satisfy a
	// caller. retryDelay is the minimum time between a failed refresh and the next refresh.
	refreshDelay = 200 * time.Millisecond
	retryDelay   = 5 * time.Second
	// waitTimeout limits how long a request waits for a value, because it is better to store an
	// object without a warning than to store the object late.
	waitTimeout = 500 * time.Millisecond
)

// cachedValue caches a value of the control plane. At most one refresh is in progress.
type cachedValue[T any] struct {
	fetch func() (T, error)

	mu        sync.Mutex
	value     T
	known     bool
	fetchedAt time.Time
	// done is closed when the refresh in progress ends. It is nil if no refresh is in progress.
	done chan struct{}
}

// get returns the value. known is false if no value is available in time. get starts a refresh if
// the value is old or does not satisfy the caller. If an old value satisfies the caller, get
// returns this value immediately, and the next caller gets the new value.
func (c *cachedValue[T]) get(satisfies func(T) bool) (value T, known bool) {
	c.mu.Lock()
	if c.needsRefresh(satisfies) && c.done == nil {
		c.done = make(chan struct{})
		go c.refresh(c.done)
	}
	if c.known && satisfies(c.value) {
		defer c.mu.Unlock()
		return c.value, true
	}
	done := c.done
	c.mu.Unlock()
	if done != nil {
		timer := time.NewTimer(waitTimeout)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			return value, false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value, c.known
}

// needsRefresh reports whether a refresh must be started. The caller must hold the lock.
func (c *cachedValue[T]) needsRefresh(satisfies func(T) bool) bool {
	age := time.Since(c.fetchedAt)
	switch {
	case c.fetchedAt.IsZero(), age >= maxAge:
		return true
	case !c.known:
		return age >= retryDelay
	default:
		return age >= refreshDelay && !satisfies(c.value)
	}
}

func (c *cachedValue[T]) refresh(done chan struct{}) {
	value, err := c.fetch()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value, c.known, c.fetchedAt, c.done = value, err == nil, time.Now(), nil
	close(done)
}
