package loop

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWindowGrowsWithLoad(t *testing.T) {
	p := PacingPolicy{BusyRate: 20}
	window := PacingWindow{Idle: 10 * time.Millisecond, Busy: 50 * time.Millisecond}
	for perSecond, want := range map[int]time.Duration{
		-1: 10 * time.Millisecond, 0: 10 * time.Millisecond, 5: 20 * time.Millisecond, 10: 30 * time.Millisecond,
		20: 50 * time.Millisecond, 1000: 50 * time.Millisecond,
	} {
		if got := p.WindowLength(window, perSecond); got != want {
			t.Errorf("%d changes per second: %s, want %s", perSecond, got, want)
		}
	}
	if got := (PacingPolicy{}).WindowLength(window, 0); got != window.Busy {
		t.Errorf("without a busy rate: %s, want %s", got, window.Busy)
	}
}

func TestWorkDelay(t *testing.T) {
	p := PacingPolicy{
		Report: PacingWindow{Idle: 10 * time.Millisecond, Busy: 80 * time.Millisecond}, BusyRate: 3,
		Progress: 250 * time.Millisecond, MaxDelay: 2 * time.Second, MaxBusyDelay: 5 * time.Second, BusyPollInterval: time.Second,
	}
	tests := map[string]struct {
		state StatusState
		// age and quiet are the times since the first and the last change.
		age, quiet time.Duration
		deliveries int
		want       time.Duration
	}{
		"a failure is due":                                 {state: StatusFailed, want: 0},
		"a failure is due under load":                      {state: StatusFailed, deliveries: 100, want: 0},
		"a result without load":                            {state: StatusSettled, want: 10 * time.Millisecond},
		"a result under load":                              {state: StatusSettled, deliveries: 3, want: 80 * time.Millisecond},
		"a result is due after the window":                 {state: StatusSettled, age: 10 * time.Millisecond, quiet: 10 * time.Millisecond, want: 0},
		"a state in progress":                              {state: StatusInProgress, want: 250 * time.Millisecond},
		"a state that changes constantly":                  {state: StatusInProgress, age: 1900 * time.Millisecond, want: 100 * time.Millisecond},
		"a result that changes constantly":                 {state: StatusSettled, deliveries: 3, age: 1970 * time.Millisecond, want: 30 * time.Millisecond},
		"many deliveries delay a result":                   {state: StatusSettled, deliveries: 4, want: time.Second},
		"many deliveries delay a state in progress":        {state: StatusInProgress, deliveries: 4, want: time.Second},
		"the delay because of deliveries is limited":       {state: StatusSettled, deliveries: 4, age: 4500 * time.Millisecond, want: 500 * time.Millisecond},
		"the delay because of deliveries is over":          {state: StatusSettled, deliveries: 4, age: 5 * time.Second, want: -3 * time.Second},
		"the delay of a state in progress is over as well": {state: StatusInProgress, deliveries: 4, age: 5 * time.Second, want: -3 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pending := PendingStatus{State: test.state, FirstAt: noon.Add(-test.age), LastAt: noon.Add(-test.quiet)}
			if got := p.WorkDelay(pending, test.deliveries, noon); got != test.want {
				t.Errorf("delay %s, want %s", got, test.want)
			}
		})
	}
}

// TestWorkDelayIsBounded checks that a status is written within the maximum delay, whatever the
// load is and however often the status changes. It also checks that a more urgent state is never
// written later than a less urgent one.
func TestWorkDelayIsBounded(t *testing.T) {
	p := DefaultPacingPolicy()
	rapid.Check(t, func(t *rapid.T) {
		age := time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "age"))
		quiet := time.Duration(rapid.Int64Range(0, int64(age)).Draw(t, "quiet"))
		deliveries := rapid.IntRange(0, 1000).Draw(t, "deliveries")
		delay := func(state StatusState) time.Duration {
			return p.WorkDelay(PendingStatus{State: state, FirstAt: noon.Add(-age), LastAt: noon.Add(-quiet)}, deliveries, noon)
		}
		if left := delay(StatusInProgress); age+left > p.MaxBusyDelay && left > 0 {
			t.Fatalf("a status of age %s waits %s", age, left)
		}
		if delay(StatusFailed) > max(delay(StatusSettled), 0) || delay(StatusSettled) > delay(StatusInProgress) {
			t.Fatalf("failed %s, settled %s, in progress %s", delay(StatusFailed), delay(StatusSettled), delay(StatusInProgress))
		}
	})
}
