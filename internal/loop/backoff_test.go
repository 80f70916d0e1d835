package loop

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	tests := map[string]struct {
		retry       Backoff
		first, last time.Duration
	}{
		"zero value":   {first: 5 * time.Millisecond, last: time.Minute},
		"default":      {retry: DefaultBackoff(), first: 5 * time.Millisecond, last: time.Minute},
		"given values": {retry: Backoff{Base: time.Second, Max: 3 * time.Second}, first: time.Second, last: 3 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			limiter := NewRateLimiter[string](test.retry)
			if got := limiter.When("a"); got != test.first {
				t.Errorf("first delay %s, want %s", got, test.first)
			}
			var last time.Duration
			for range 100 {
				last = limiter.When("a")
			}
			if last != test.last {
				t.Errorf("last delay %s, want %s", last, test.last)
			}
			if got := limiter.When("b"); got != test.first {
				t.Errorf("another item is delayed by %s", got)
			}
		})
	}
}
