package interpreter

import "time"

// firstPause is the pause after a limit was exceeded first. Each further time doubles the pause, up to
// maxPause.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)

// maxAwait is how long a circuit is kept after its pause if no trial comes. It is longer than the delay
// between two attempts of a controller.
const maxAwait = 5 * time.Minute

// circuit tracks the pause of the calls for a key, or for all keys. A nil or zero circuit permits all
// calls. It is guarded by the Breaker's lock.
type circuit struct {
	// pause is the length of the last pause. It is 0 if no trial is due.
	pause time.Duration
	// until is the end of the pause.
	until time.Time
	// trialRuns is true while the trial after the pause runs.
	trialRuns bool
	// cause is the error of the call that started the first pause.
	cause error
}

func (c *circuit) isPaused() bool { return c != nil && c.pause > 0 }

// refuses reports whether a call may not start now.
func (c *circuit) refuses(now time.Time) bool {
	return c.isPaused() && (c.trialRuns || now.Before(c.until))
}

// isForgotten reports whether no trial has come within maxAwait after the pause.
func (c *circuit) isForgotten(now time.Time) bool {
	return !c.trialRuns && now.Sub(c.until) > maxAwait
}

// begin starts a call that is not refused, and reports whether it is the trial after a pause.
func (c *circuit) begin() (isTrial bool) {
	if !c.isPaused() {
		return false
	}
	c.trialRuns = true
	return true
}

// startPause starts the first pause, or the one after a trial that exceeded a limit.
func (c *circuit) startPause(now time.Time, exceeded error) {
	if c.pause == 0 {
		c.cause = exceeded
	}
	c.pause = min(max(2*c.pause, firstPause), maxPause)
	c.until, c.trialRuns = now.Add(c.pause), false
}
