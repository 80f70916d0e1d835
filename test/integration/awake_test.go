package integration

import (
	"sync/atomic"
	"testing"
	"time"

	"karmada.io/karmada/internal/testenv"
)

const (
	// beat is how often the clock looks whether the process still runs, blink what it
	// may miss.
	beat  = 20 * time.Millisecond
	blink = 10 * beat
	// aftermath is for how long what a machine has missed is made up for.
	aftermath = 10 * time.Second
)

// awake is a clock that stands still while the process does: what a machine that has
// other things to do takes away counts for nothing that is measured. Its zero value
// does not go before start.
type awake struct {
	// ran is how long the process has run, in nanoseconds, paused what that was when it
	// stood still last.
	ran, paused atomic.Int64
}

// clock is the one of this process.
var clock awake

// start lets the clock go, for as long as the process lives.
func (a *awake) start() {
	go func() {
		last := time.Now()
		for now := range time.Tick(beat) {
			passed := now.Sub(last)
			last = now
			if passed > blink {
				a.paused.Store(a.ran.Add(int64(blink)))
				continue
			}
			a.ran.Add(int64(passed))
		}
	}()
}

// now is how long the process has run.
func (a *awake) now() time.Duration { return time.Duration(a.ran.Load()) }

// since is how long the process has run since then.
func (a *awake) since(then time.Duration) time.Duration { return a.now() - then }

// disturbed tells whether the process stood still lately.
func (a *awake) disturbed() bool {
	return a.paused.Load() > 0 && a.since(time.Duration(a.paused.Load())) < aftermath
}

// undisturbed demands that a check finds nothing wrong. It is made again when the
// machine stood still lately: then it says nothing about what is checked.
func undisturbed(t testing.TB, what string, check func() error) {
	t.Helper()
	again := time.NewTicker(blink)
	defer again.Stop()
	for began := clock.now(); ; <-again.C {
		err := check()
		if err == nil {
			return
		}
		if !clock.disturbed() || clock.since(began) > testenv.Patience {
			t.Fatalf("%s: %v", what, err)
		}
		t.Logf("%s: tried again, for the machine stood still: %v", what, err)
	}
}
