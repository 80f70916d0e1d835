package objectcache

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestDelays(t *testing.T) {
	tests := map[string]struct {
		err     error
		longest time.Duration
	}{
		"a cluster that does not answer is asked each minute": {errors.New("no answer"), time.Minute},
		"a kind that is not served is rarely asked for":       {fmt.Errorf("m1: %w", errNotServed), maxNotServedDelay},
		"a list beyond a limit is rarely repeated":            {fmt.Errorf("listing: %w", &boundError{}), maxNotServedDelay},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cache, err := New(Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := &sourceWatch{cache: cache}
			if got := s.delay(test.err, 1000); got > test.longest || got < test.longest*3/4-time.Second {
				t.Errorf("the delay is %s, want about %s", got, test.longest)
			}
		})
	}
}
