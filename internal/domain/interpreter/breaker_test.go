package interpreter

import (
	"errors"
	"testing"
	"time"
)

// harness calls through a Breaker at a time that the test sets.
type harness struct {
	Breaker
	t   *testing.T
	now time.Time
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	return &harness{t: t, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (h *harness) clock() time.Time { return h.now }

// call makes a call that must be permitted, and checks the text of its error.
func (h *harness) call(key string, outcome CallOutcome, text, want string) {
	h.t.Helper()
	isCalled := false
	err := h.Do(key, h.clock, func() (CallOutcome, error) {
		isCalled = true
		if outcome == CallExceededLimits {
			return outcome, errors.New(text)
		}
		return outcome, nil
	})
	if !isCalled {
		h.t.Fatalf("the call for %q is refused: %v", key, err)
	}
	if got := textOf(err); got != want {
		h.t.Fatalf("the call for %q returns %q, want %q", key, got, want)
	}
}

func (h *harness) refused(key, want string) {
	h.t.Helper()
	err := h.Do(key, h.clock, func() (CallOutcome, error) {
		h.t.Fatalf("the call for %q is permitted", key)
		return CallUnfinished, nil
	})
	var paused *PausedError
	if !errors.As(err, &paused) || err.Error() != want {
		h.t.Fatalf("the refused call for %q returns %v, want %q", key, err, want)
	}
	if got := textOf(h.Paused(key, h.now)); got != want {
		h.t.Fatalf("Paused returns %q for %q, want %q", got, key, want)
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestCallsArePausedAfterAnExceededLimit(t *testing.T) {
	h := newHarness(t)
	h.call("a", CallWithinLimits, "", "")
	h.call("a", CallExceededLimits, "line 1", "line 1")
	h.refused("a", "line 1")
	for _, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		h.now = h.now.Add(time.Duration(seconds)*time.Second - time.Nanosecond)
		h.refused("a", "line 1")
		h.now = h.now.Add(time.Nanosecond)
		h.call("a", CallExceededLimits, "line 2", "line 1")
	}
	h.now = h.now.Add(maxPause)
	h.call("a", CallWithinLimits, "", "")
	h.call("a", CallWithinLimits, "", "")
	h.call("a", CallExceededLimits, "line 3", "line 3")
	h.refused("a", "line 3")
	h.now = h.now.Add(firstPause)
	h.call("a", CallWithinLimits, "", "")
	if len(h.paused) != 0 {
		t.Errorf("%d keys are still paused", len(h.paused))
	}
}

func TestOneTrialRunsAtATime(t *testing.T) {
	h := newHarness(t)
	h.call("a", CallExceededLimits, "slow", "slow")
	h.now = h.now.Add(firstPause)
	err := h.Do("a", h.clock, func() (CallOutcome, error) {
		h.refused("a", "slow")
		h.call("b", CallWithinLimits, "", "")
		return CallWithinLimits, nil
	})
	if err != nil {
		t.Error(err)
	}
	h.call("a", CallWithinLimits, "", "")
}

func TestCallFromBeforeThePauseChangesNoPause(t *testing.T) {
	h := newHarness(t)
	err := h.Do("a", h.clock, func() (CallOutcome, error) {
		h.call("a", CallExceededLimits, "first", "first")
		return CallExceededLimits, errors.New("second")
	})
	if textOf(err) != "first" {
		t.Errorf("error %v, want the text of the pause", err)
	}
	h.now = h.now.Add(firstPause)
	err = h.Do("a", h.clock, func() (CallOutcome, error) {
		// A call of before the pause that ends during the trial.
		h.end(attempt{key: "a"}, CallWithinLimits, h.now, &err)
		h.refused("a", "first")
		return CallWithinLimits, nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTrialWithoutVerdictIsRepeated(t *testing.T) {
	h := newHarness(t)
	for _, key := range []string{"a", "b", "c"} {
		h.call(key, CallExceededLimits, "slow", "slow")
	}
	h.now = h.now.Add(firstPause)
	h.call("a", CallUnfinished, "", "")
	func() {
		defer func() { _ = recover() }()
		_ = h.Do("a", h.clock, func() (CallOutcome, error) { panic("a defect") })
	}()
	h.call("a", CallExceededLimits, "slow", "slow")
	h.refused("a", "slow")
}

func TestKeysArePausedSeparately(t *testing.T) {
	h := newHarness(t)
	h.call("a", CallExceededLimits, "a", "a")
	h.refused("a", "a")
	h.call("b", CallWithinLimits, "", "")
	h.call("b", CallExceededLimits, "b", "b")
	h.refused("b", "b")
	h.call("c", CallWithinLimits, "", "")

	h.call("c", CallExceededLimits, "c", "c")
	h.refused("a", "a")
	h.refused("d", "c")
	h.now = h.now.Add(firstPause)
	h.call("a", CallExceededLimits, "a2", "a") // the trial of all keys
	h.refused("d", "c")
	h.now = h.now.Add(2 * firstPause)
	for _, key := range []string{"d", "a", "b", "c"} {
		h.call(key, CallWithinLimits, "", "")
	}
	if len(h.paused) != 0 {
		t.Errorf("%d keys are still paused", len(h.paused))
	}
}

func TestOldPausesDoNotPauseOtherKeys(t *testing.T) {
	h := newHarness(t)
	for _, key := range []string{"a", "b", "c"} {
		h.call(key, CallExceededLimits, "slow", "slow")
	}
	h.now = h.now.Add(firstPause)
	h.call("d", CallWithinLimits, "", "")
	// The objects of a, b and c are deleted, so that their keys get no trial.
	h.now = h.now.Add(time.Hour)
	h.call("e", CallExceededLimits, "e", "e")
	h.refused("e", "e")
	h.call("f", CallWithinLimits, "", "")
	if len(h.paused) != 1 {
		t.Errorf("%d keys are kept, want only the last one", len(h.paused))
	}
}
