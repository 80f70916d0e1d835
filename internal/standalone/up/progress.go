package up

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// event is one line of the story that a start tells, also from a detached
// process to the one that waits for it.
type event struct {
	// Step is what was done; Begin tells that it has only begun.
	Step  string `json:"step,omitempty"`
	Begin bool   `json:"begin,omitempty"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds,omitempty"`
	// Error is why it failed.
	Error string `json:"error,omitempty"`
	// Ready ends the story.
	Ready bool `json:"ready,omitempty"`
	// Text is advice printed as it is.
	Text string `json:"text,omitempty"`
}

// progress tells what happens while it happens.
type progress struct {
	mu   sync.Mutex
	emit func(event)
	now  func() time.Time
}

func newProgress(emit func(event)) *progress { return &progress{emit: emit, now: time.Now} }

// step runs one step and tells how long it took. Steps may run side by side.
func (p *progress) step(name string, run func() error) error {
	began := p.now()
	p.tell(event{Step: name, Begin: true})
	err := run()
	done := event{Step: name, Seconds: p.now().Sub(began).Seconds()}
	if err != nil {
		done.Error = err.Error()
	}
	p.tell(done)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (p *progress) tell(e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.emit(e)
}

func without(list []string, item string) []string {
	kept := list[:0]
	for _, entry := range list {
		if entry != item {
			kept = append(kept, entry)
		}
	}
	return kept
}

// encoder writes events for another process.
func encoder(out io.Writer) func(event) {
	lines := json.NewEncoder(out)
	return func(e event) {
		// The process that waits may be gone; starting goes on without it.
		_ = lines.Encode(e)
	}
}
