package queues

import (
	"testing"
	"time"
)

func TestWhatFailedIsTriedAgainSoon(t *testing.T) {
	tests := map[string]struct {
		retry       Backoff
		first, last time.Duration
	}{
		"without a word, within a minute": {first: 5 * time.Millisecond, last: time.Minute},
		"by default, within a minute":     {retry: DefaultBackoff(), first: 5 * time.Millisecond, last: time.Minute},
		"as it was said":                  {retry: Backoff{Base: time.Second, Max: 3 * time.Second}, first: time.Second, last: 3 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			limiter := Limiter[string](test.retry)
			if got := limiter.When("a"); got != test.first {
				t.Errorf("the first time after %s, want %s", got, test.first)
			}
			var last time.Duration
			for range 100 {
				last = limiter.When("a")
			}
			if last != test.last {
				t.Errorf("at last after %s, want %s", last, test.last)
			}
			if got := limiter.When("b"); got != test.first {
				t.Errorf("another waits %s because of the first", got)
			}
		})
	}
}
