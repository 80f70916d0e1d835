package integration

import (
	"sync/atomic"
	"testing"
	"time"

	"karmada.io/karmada/internal/testenv"
)

const (
	// clockTick is the interval at which the clock checks whether the process runs. A gap longer
	// than maxTickGap counts as a stall of the process.
	clockTick  = 20 * time.Millisecond
	maxTickGap = 10 * clockTick
	// stallRecoveryTime is the time after a stall during which delayed work is still being done.
	stallRecoveryTime = 10 * time.Second
)

// processClock is a clock that stops while the process is stalled. So time that a busy machine
// takes away is not part of measured times. The zero value does not run before start.
type processClock struct {
	// runTime is how long the process has run, in nanoseconds. lastStall is the value of runTime at
	// the last stall.
	runTime, lastStall atomic.Int64
}

// clock is the clock of this process.
var clock processClock

// start runs the clock until the process ends.
func (p *processClock) start() {
	go func() {
		last := time.Now()
		for now := range time.Tick(clockTick) {
			passed := now.Sub(last)
			last = now
			if passed > maxTickGap {
				p.lastStall.Store(p.runTime.Add(int64(maxTickGap)))
				continue
			}
			p.runTime.Add(int64(passed))
		}
	}()
}

// now returns how long the process has run.
func (p *processClock) now() time.Duration { return time.Duration(p.runTime.Load()) }

// since returns how long the process has run since an earlier value of now.
func (p *processClock) since(then time.Duration) time.Duration { return p.now() - then }

// hasStalledRecently reports whether the process was stalled within stallRecoveryTime.
func (p *processClock) hasStalledRecently() bool {
	return p.lastStall.Load() > 0 && p.since(time.Duration(p.lastStall.Load())) < stallRecoveryTime
}

// retryAfterStall fails the test if a check returns an error. If the process was stalled recently,
// the error may be a consequence of the stall, so the check is repeated.
func retryAfterStall(t testing.TB, description string, check func() error) {
	t.Helper()
	again := time.NewTicker(maxTickGap)
	defer again.Stop()
	for began := clock.now(); ; <-again.C {
		err := check()
		if err == nil {
			return
		}
		if !clock.hasStalledRecently() || clock.since(began) > testenv.Patience {
			t.Fatalf("%s: %v", description, err)
		}
		t.Logf("%s: repeated after a stall of the process: %v", description, err)
	}
}
