package processnode

import (
	"strings"
	"sync"
	"time"
)

// logFollower collects the output of a log. The writer calls End after the last write.
type logFollower struct {
	mu      sync.Mutex
	written strings.Builder
	changed chan struct{}
	ended   chan struct{}
}

// newLogFollower returns a Follower without output.
func newLogFollower() *logFollower {
	return &logFollower{changed: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Write implements io.Writer.
func (f *logFollower) Write(text []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
	return f.written.Write(text)
}

// End marks the end of the log. It must be called once.
func (f *logFollower) End() { close(f.ended) }

// Ended returns a channel that is closed after End.
func (f *logFollower) Ended() <-chan struct{} { return f.ended }

// Text returns the output so far.
func (f *logFollower) Text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.written.String()
}

// WaitFor waits for a text and reports whether it was written.
func (f *logFollower) WaitFor(text string) bool {
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
