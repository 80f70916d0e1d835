package up

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"karmada.io/karmada/internal/console"
)

// frames are the characters that animate a running step.
var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

const frameInterval = 100 * time.Millisecond

// screen prints events for users: one line for each completed step. On a terminal, the last line shows
// the running steps and is redrawn.
type screen struct {
	out   io.Writer
	style console.Style

	mu      sync.Mutex
	pending []string
	frame   int
	// animated reports whether the animation is running.
	animated bool
}

// newScreen returns two functions: show prints an event, and end erases the last line.
func newScreen(out io.Writer) (show func(event), end func()) {
	s := &screen{out: out, style: console.NewStyle(out)}
	return s.show, s.end
}

func (s *screen) show(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	switch {
	case e.Text != "":
		fmt.Fprintln(s.out, e.Text)
	case e.Begin:
		s.pending = append(s.pending, e.Step)
	case e.Step != "":
		s.pending = removeItem(s.pending, e.Step)
		fmt.Fprintln(s.out, s.style.StepLine(e.Step, time.Duration(e.Seconds*float64(time.Second)), e.Error != ""))
	}
	s.draw()
	if s.style.IsTerminal() && len(s.pending) > 0 && !s.animated {
		s.animated = true
		go s.animate()
	}
}

// animate draws frames until no step is in progress.
func (s *screen) animate() {
	ticker := time.NewTicker(frameInterval)
	defer ticker.Stop()
	for range ticker.C {
		if !s.advance() {
			return
		}
	}
}

// advance draws the next frame, and reports whether a step is in progress.
func (s *screen) advance() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.frame++
	s.draw()
	s.animated = len(s.pending) > 0
	return s.animated
}

// end erases the last line.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.pending = nil
}

func (s *screen) clear() {
	if s.style.IsTerminal() && len(s.pending) > 0 {
		fmt.Fprint(s.out, "\r\033[K")
	}
}

func (s *screen) draw() {
	if s.style.IsTerminal() && len(s.pending) > 0 {
		fmt.Fprintf(s.out, "%s %s", frames[s.frame%len(frames)], strings.Join(s.pending, ", "))
	}
}
