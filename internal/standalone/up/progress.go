package up

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// event reports the progress of a start. A detached process sends events to the process that waits for
// the start.
type event struct {
	// Step is the name of a step. Begin is true when the step begins, and false when it has ended.
	Step  string `json:"step,omitempty"`
	Begin bool   `json:"begin,omitempty"`
	// Seconds is the duration of the step.
	Seconds float64 `json:"seconds,omitempty"`
	// Error is the reason why the start failed.
	Error string `json:"error,omitempty"`
	// Ready is true in the last event of a successful start.
	Ready bool `json:"ready,omitempty"`
	// Text is printed unchanged.
	Text string `json:"text,omitempty"`
}

// progressReporter sends the events of a start.
type progressReporter struct {
	mu   sync.Mutex
	send func(event)
	now  func() time.Time
}

func newProgress(send func(event)) *progressReporter {
	return &progressReporter{send: send, now: time.Now}
}

// step runs one step and reports its duration. Steps may run concurrently.
func (p *progressReporter) step(name string, run func() error) error {
	started := p.now()
	p.report(event{Step: name, Begin: true})
	err := run()
	done := event{Step: name, Seconds: p.now().Sub(started).Seconds()}
	if err != nil {
		done.Error = err.Error()
	}
	p.report(done)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (p *progressReporter) report(e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.send(e)
}

func removeItem(list []string, item string) []string {
	kept := list[:0]
	for _, entry := range list {
		if entry != item {
			kept = append(kept, entry)
		}
	}
	return kept
}

// newEventEncoder returns a function that writes events for another process.
func newEventEncoder(out io.Writer) func(event) {
	lines := json.NewEncoder(out)
	return func(e event) {
		// Ignore the error and continue the start, because the waiting process may have ended.
		_ = lines.Encode(e)
	}
}
