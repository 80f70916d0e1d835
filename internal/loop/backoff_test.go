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
			expect := func(item string, longest time.Duration) (delay time.Duration) {
				t.Helper()
				if delay = limiter.When(item); delay < longest/2 || delay > longest {
					t.Errorf("delay %s of item %s, want %s to %s", delay, item, longest/2, longest)
				}
				return delay
			}
			expect("a", test.first)
			for range 20 {
				limiter.When("a")
			}
			delays := map[time.Duration]bool{}
			for range 100 {
				delays[expect("a", test.last)] = true
			}
			if len(delays) < 50 {
				t.Errorf("100 retries have only %d different delays", len(delays))
			}
			expect("b", test.first)
		})
	}
}
