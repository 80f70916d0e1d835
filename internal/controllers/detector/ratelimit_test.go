package detector

import (
	"testing"
	"time"
)

func TestRetriesShareRateOnlyWithoutPriorityQueue(t *testing.T) {
	o := DefaultOptions()
	o.RetryRate, o.RetryBurst = 1, 3
	last := func() (delay time.Duration) {
		limits := newRateLimiter[string](o)
		for _, item := range []string{"a", "b", "c", "d"} {
			delay = limits.When(item)
		}
		return delay
	}
	if got := last(); got > o.Backoff.Base {
		t.Errorf("with priorities the fourth item waits %s", got)
	}
	o.PriorityQueue = false
	if got := last(); got < 900*time.Millisecond || got > time.Second {
		t.Errorf("without priorities the fourth item waits %s", got)
	}
}
