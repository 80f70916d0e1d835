package tainteviction

import (
	"context"
	"math"
	"time"
)

// rateLimiter runs actions one after the other. After each action that had an effect it waits for a
// minimum interval. Actions without an effect do not use up the rate.
type rateLimiter struct {
	interval time.Duration
	// turn is a semaphore. Only the holder may run an action or wait for the next one.
	turn chan struct{}
	// next is the earliest time of the next action. Only the holder of turn may write it.
	next time.Time
}

// newRateLimiter returns a rateLimiter that allows rate actions per second.
func newRateLimiter(rate float64) *rateLimiter {
	interval := float64(time.Second) / rate
	return &rateLimiter{interval: time.Duration(min(interval, math.MaxInt64/2)), turn: make(chan struct{}, 1)}
}

// runInTurn waits for its turn and for the interval, and then calls act. If ctx ends before that,
// it returns the error of ctx.
func (r *rateLimiter) runInTurn(ctx context.Context, act func() (hadEffect bool, err error)) error {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.turn }()
	if err := waitUntil(ctx, r.next); err != nil {
		return err
	}
	hadEffect, err := act()
	if hadEffect {
		r.next = time.Now().Add(r.interval)
	}
	return err
}

func waitUntil(ctx context.Context, at time.Time) error {
	wait := time.NewTimer(time.Until(at))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
