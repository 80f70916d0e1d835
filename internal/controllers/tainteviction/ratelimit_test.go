package tainteviction

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestThoseThatActKeepTheirDistanceAndTheOthersCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := newPace(0.5), time.Now()
		var mu sync.Mutex
		var acted []time.Duration
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				err := p.do(t.Context(), func() (bool, error) {
					if i%10 != 0 {
						return false, nil
					}
					mu.Lock()
					defer mu.Unlock()
					acted = append(acted, time.Since(began))
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
				t.Errorf("the act %d was after %s, want %s", i, at, want)
			}
		}
		if len(acted) != 4 {
			t.Errorf("%d acted", len(acted))
		}
	})
}

func TestAFailureIsNoAct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began, refused := newPace(0.001), time.Now(), errors.New("refused")
		for range 3 {
			if err := p.do(t.Context(), func() (bool, error) { return false, refused }); !errors.Is(err, refused) {
				t.Error(err)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("failures took %s", took)
		}
	})
}

func TestWhoWaitsEndsWithTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(0.0001)
		act := func() (bool, error) { return true, nil }
		if err := p.do(t.Context(), act); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range 2 { // one has the turn, one waits for it
			all.Go(func() {
				if err := p.do(ctx, act); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("ended with %v", err)
				}
			})
		}
		all.Wait()
	})
}

func TestAnyRateIsAStep(t *testing.T) {
	for rate, want := range map[float64]time.Duration{0.5: 2 * time.Second, 1: time.Second, 1000: time.Millisecond} {
		if got := newPace(rate).step; got != want {
			t.Errorf("a rate of %v is a step of %s, want %s", rate, got, want)
		}
	}
	if got := newPace(1e-300).step; got <= 0 {
		t.Errorf("the least rate is a step of %s", got)
	}
}
