package tainteviction

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRateLimiterCountsOnlyActionsWithEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, start := newRateLimiter(0.5), time.Now()
		var mu sync.Mutex
		var acted []time.Duration
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				err := p.runInTurn(t.Context(), func() (bool, error) {
					if i%10 != 0 {
						return false, nil
					}
					mu.Lock()
					defer mu.Unlock()
					acted = append(acted, time.Since(start))
					return true, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for i, at := range acted {
			if want := time.Duration(i) * 2 * time.Second; at != want {
				t.Errorf("action %d ran after %s, want %s", i, at, want)
			}
		}
		if len(acted) != 4 {
			t.Errorf("%d actions ran", len(acted))
		}
	})
}

func TestRateLimiterDoesNotCountFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, start, rejected := newRateLimiter(0.001), time.Now(), errors.New("rejected")
		for range 3 {
			if err := p.runInTurn(t.Context(), func() (bool, error) { return false, rejected }); !errors.Is(err, rejected) {
				t.Error(err)
			}
		}
		if elapsed := time.Since(start); elapsed != 0 {
			t.Errorf("failed actions took %s", elapsed)
		}
	})
}

func TestRateLimiterStopsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRateLimiter(0.0001)
		act := func() (bool, error) { return true, nil }
		if err := p.runInTurn(t.Context(), act); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range 2 { // one holds the turn, one waits for it
			all.Go(func() {
				if err := p.runInTurn(ctx, act); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("returned %v", err)
				}
			})
		}
		all.Wait()
	})
}

func TestRateLimiterInterval(t *testing.T) {
	for rate, want := range map[float64]time.Duration{0.5: 2 * time.Second, 1: time.Second, 1000: time.Millisecond} {
		if got := newRateLimiter(rate).interval; got != want {
			t.Errorf("a rate of %v has an interval of %s, want %s", rate, got, want)
		}
	}
	if got := newRateLimiter(1e-300).interval; got <= 0 {
		t.Errorf("the lowest rate has an interval of %s", got)
	}
}
