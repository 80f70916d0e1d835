package loop

import "time"

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

// PacingPolicy holds the delays and limits with which changed statuses are written.
//
// A status passes three stages on its way from a member to the template: changes in the member are
// collected, the status of the Work is written, and the statuses of the binding and of the template
// are written. All stages use one policy. Its aims, in order of importance:
//
//   - a failure is written at once;
//   - the result of a single rollout is written within milliseconds;
//   - of thousands of rollouts at once, only the result of each rollout is written, and only once;
//   - deliveries that users requested have precedence over statuses, because statuses change again
//     during the deliveries anyway.
//
// An intermediate state of a rollout is written only if it lasts, and only while few rollouts run.
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
	// state in progress waits because of these limits. With a short maximum, each of thousands of
	// slow rollouts would be written several times.
	WorkProgressPerSecond, BindingProgressPerSecond int
	MaxProgressDelay                                time.Duration

	// Settle is how long a changed binding waits for the first reports of its Works. Lag is how
	// long the status for an earlier generation of the binding stays while the current generation
	// is delivered to members.
	Settle, Lag time.Duration

	// BackgroundPerSecond limits the updates of binding statuses that are not urgent.
	BackgroundPerSecond int
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
		WorkProgressPerSecond: 5, BindingProgressPerSecond: 3, MaxProgressDelay: 2 * time.Minute,
		Settle: time.Second, Lag: 3 * time.Second, BackgroundPerSecond: 25,
	}
}

// WindowLength returns the length of a window at the given number of changes per second.
func (p PacingPolicy) WindowLength(window PacingWindow, perSecond int) time.Duration {
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

// WorkDelay returns how long the pending status of a Work must still wait. A result that is not
// positive means that the status is due.
func (p PacingPolicy) WorkDelay(pending PendingStatus, deliveriesPerSecond int, now time.Time) time.Duration {
	if pending.State == StatusFailed {
		return 0
	}
	if remaining := pending.FirstAt.Add(p.MaxBusyDelay).Sub(now); remaining > 0 && deliveriesPerSecond > p.BusyRate {
		return min(remaining, p.BusyPollInterval)
	}
	window := p.Progress
	if pending.State == StatusSettled {
		window = p.WindowLength(p.Report, deliveriesPerSecond)
	}
	dueAt := pending.FirstAt.Add(p.MaxDelay)
	if windowEnd := pending.LastAt.Add(window); windowEnd.Before(dueAt) {
		dueAt = windowEnd
	}
	return dueAt.Sub(now)
}
