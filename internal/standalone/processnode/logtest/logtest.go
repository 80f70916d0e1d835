// Package logtest collects log output in tests while the log is written.
package logtest

import (
	"strings"
	"sync"
	"time"
)

// timeout is how long WaitFor waits for a text.
const timeout = time.Minute

// Follower collects the output of a log. The writer calls End after the last write.
type Follower struct {
	mu      sync.Mutex
	written strings.Builder
	changed chan struct{}
	ended   chan struct{}
}

// NewFollower returns a Follower without output.
func NewFollower() *Follower {
	return &Follower{changed: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Write implements io.Writer.
func (f *Follower) Write(text []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
	return f.written.Write(text)
}

// End marks the end of the log. It must be called once.
func (f *Follower) End() { close(f.ended) }

// Ended returns a channel that is closed after End.
func (f *Follower) Ended() <-chan struct{} { return f.ended }

// Text returns the output so far.
func (f *Follower) Text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.written.String()
}

// WaitFor waits for a text and reports whether it was written.
func (f *Follower) WaitFor(text string) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for !strings.Contains(f.Text(), text) {
		select {
		case <-f.changed:
		case <-f.ended:
			return strings.Contains(f.Text(), text)
		case <-timer.C:
			return false
		}
	}
	return true
}
