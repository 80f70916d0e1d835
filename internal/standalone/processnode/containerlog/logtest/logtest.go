// Package logtest reads logs while they are written, for tests.
package logtest

import (
	"strings"
	"sync"
	"time"
)

// patience is how long a text is waited for.
const patience = time.Minute

// Follower collects a log. Whoever writes the log to it calls End at the end.
type Follower struct {
	mu      sync.Mutex
	written strings.Builder
	news    chan struct{}
	ended   chan struct{}
}

// NewFollower is one that has read nothing.
func NewFollower() *Follower {
	return &Follower{news: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Write implements io.Writer.
func (f *Follower) Write(text []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default:
	}
	return f.written.Write(text)
}

// End says that nothing more comes. It is called once.
func (f *Follower) End() { close(f.ended) }

// Ended is closed when nothing more comes.
func (f *Follower) Ended() <-chan struct{} { return f.ended }

// Text is what was read so far.
func (f *Follower) Text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.written.String()
}

// Until waits for a text and reports whether it came.
func (f *Follower) Until(text string) bool {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for !strings.Contains(f.Text(), text) {
		select {
		case <-f.news:
		case <-f.ended:
			return strings.Contains(f.Text(), text)
		case <-limit.C:
			return false
		}
	}
	return true
}
