package integration

import (
	"sync/atomic"
	"testing"
	"time"
)

const (
	// beat is how often the clock looks whether the process still runs, blink what it
	// may miss.
	beat  = 20 * time.Millisecond
	blink = 10 * beat
	// tries are how often a machine that stands still may spoil a check.
	tries = 10
)

// awake is a clock that stands still while the process does: what a machine that has
// other things to do takes away counts for nothing that is measured. Its zero value
// does not go before start.
type awake struct {
	ran    atomic.Int64
	pauses atomic.Int64
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
				a.pauses.Add(1)
				passed = blink
			}
			a.ran.Add(int64(passed))
		}
	}()
}

// now is how long the process has run.
func (a *awake) now() time.Duration { return time.Duration(a.ran.Load()) }

// since is how long the process has run since then.
func (a *awake) since(then time.Duration) time.Duration { return a.now() - then }

// undisturbed demands that a check finds nothing wrong. It is made again when the
// machine stood still meanwhile: then it says nothing about what is checked.
func undisturbed(t testing.TB, what string, check func() error) {
	t.Helper()
	for try := 1; ; try++ {
		before := clock.pauses.Load()
		err := check()
		if err == nil {
			return
		}
		if clock.pauses.Load() == before || try == tries {
			t.Fatalf("%s: %v", what, err)
		}
		t.Logf("%s: tried again, for the machine stood still: %v", what, err)
	}
}
