package loop

import (
	"sync"
	"time"
)

// StatusState is the state that a changed status shows.
type StatusState int

const (
	// StatusInProgress is a state that is about to change again.
	StatusInProgress StatusState = iota
	// StatusSettled is a state that does not change without a new cause, for example the end of a
	// rollout.
	StatusSettled
	// StatusFailed is a failure.
	StatusFailed
)

// PacingWindow is how long changes are collected before they are written together. The window grows with
// the number of changes per second, because a saved write matters more under load.
type PacingWindow struct {
	// Idle is the length of the window without load. Busy is its length at the busy rate and above.
	Idle, Busy time.Duration
}

// PacingPolicy holds the delays and limits of all stages.
type PacingPolicy struct {
	// Collect is the window in which changes of the objects of one Work are collected in a member.
	Collect PacingWindow
	// Report is the window for a settled status of a Work. Aggregate is the window in which the
	// reports of the Works of one binding are collected.
	Report, Aggregate PacingWindow
	// BusyRate is the number of changes per second from which windows have their full length. It is
	// also the number of deliveries per second above which the status of a Work waits, unless the
	// status is a failure.
	BusyRate int

	// Progress is how long a state in progress must last before it is written. MaxDelay is the
	// maximum delay of a status while new changes arrive.
	Progress, MaxDelay time.Duration
	// MaxBusyDelay is the maximum delay of a status because of deliveries. BusyPollInterval is how
	// often a delayed status is checked.
	MaxBusyDelay, BusyPollInterval time.Duration

	// WorkProgressPerSecond limits the writes of states in progress of all Works, and
	// BindingProgressPerSecond those of all bindings. MaxProgressDelay is the maximum time that a
	// state in progress waits because of these limits.
	WorkProgressPerSecond, BindingProgressPerSecond int
	MaxProgressDelay                                time.Duration

	// Settle is how long a changed binding waits for the first reports of its Works. Lag is how
	// long the status for an earlier generation of the binding stays while the present generation
	// is delivered to members.
	Settle, Lag time.Duration
}

// DefaultPacingPolicy returns the policy that all programs use.
func DefaultPacingPolicy() PacingPolicy {
	return PacingPolicy{
		Collect:   PacingWindow{Idle: 2 * time.Millisecond, Busy: 20 * time.Millisecond},
		Report:    PacingWindow{Idle: 10 * time.Millisecond, Busy: 80 * time.Millisecond},
		Aggregate: PacingWindow{Idle: 5 * time.Millisecond, Busy: 60 * time.Millisecond},
		BusyRate:  20,
		Progress:  250 * time.Millisecond, MaxDelay: 2 * time.Second,
		MaxBusyDelay: 5 * time.Second, BusyPollInterval: time.Second,
		WorkProgressPerSecond: 5, BindingProgressPerSecond: 3, MaxProgressDelay: 30 * time.Second,
		Settle: time.Second, Lag: 3 * time.Second,
	}
}

// At returns the length of a window at the given number of changes per second.
func (p PacingPolicy) At(window PacingWindow, perSecond int) time.Duration {
	if p.BusyRate <= 0 || perSecond >= p.BusyRate {
		return window.Busy
	}
	return window.Idle + (window.Busy-window.Idle)*time.Duration(max(perSecond, 0))/time.Duration(p.BusyRate)
}

// PendingStatus is a changed status that is not written yet.
type PendingStatus struct {
	State StatusState
	// FirstAt and LastAt are the times of the first and the last change of the status.
	FirstAt, LastAt time.Time
}

// WorkDelay returns how long the status of a Work must still wait. A result that is not positive
// means that the status is due.
func (p PacingPolicy) WorkDelay(of PendingStatus, deliveriesPerSecond int, now time.Time) time.Duration {
	if of.State == StatusFailed {
		return 0
	}
	if left := of.FirstAt.Add(p.MaxBusyDelay).Sub(now); left > 0 && deliveriesPerSecond > p.BusyRate {
		return min(left, p.BusyPollInterval)
	}
	quiet := p.Progress
	if of.State == StatusSettled {
		quiet = p.At(p.Report, deliveriesPerSecond)
	}
	due := of.FirstAt.Add(p.MaxDelay)
	if calm := of.LastAt.Add(quiet); calm.Before(due) {
		due = calm
	}
	return due.Sub(now)
}

// changeRate counts changes per second. In the zero value the count is 0. It is not safe for concurrent
// use.
type changeRate struct {
	second            int64
	current, previous int
}

// Record counts one change.
func (r *changeRate) Record(now time.Time) {
	r.rollOver(now)
	r.current++
}

// PerSecond returns the larger of two counts: that of the last whole second and that of the current
// second.
func (r *changeRate) PerSecond(now time.Time) int {
	r.rollOver(now)
	return max(r.current, r.previous)
}

// rollOver starts to count a new second if the current second is over.
func (r *changeRate) rollOver(now time.Time) {
	switch second := now.Unix(); second - r.second {
	case 0:
	case 1:
		r.second, r.previous, r.current = second, r.current, 0
	default:
		r.second, r.previous, r.current = second, 0, 0
	}
}

// AdaptiveWindow decides how long the changes of an object are collected before a pass. The delay
// grows with the number of changes of all objects.
type AdaptiveWindow struct {
	policy PacingPolicy
	window PacingWindow

	mu      sync.Mutex
	changes changeRate
}

// NewAdaptiveWindow returns an AdaptiveWindow with the given policy and window.
func NewAdaptiveWindow(policy PacingPolicy, window PacingWindow) *AdaptiveWindow {
	return &AdaptiveWindow{policy: policy, window: window}
}

// Delay counts a change and returns the delay before the pass that handles this change.
func (a *AdaptiveWindow) Delay() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.changes.Record(now)
	return a.policy.At(a.window, a.changes.PerSecond(now))
}
