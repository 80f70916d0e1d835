package tainteviction

import (
	"context"
	"math"
	"time"
)

// rateLimiter runs actions one after the other, with a minimum interval after each action that
// had an effect. Actions without effect do not consume the rate.
type rateLimiter struct {
	interval time.Duration
	// turn is a semaphore that the running action, or the next one, holds.
	turn chan struct{}
	// next is the earliest time of the next action. The holder of turn writes it.
	next time.Time
}

// newRateLimiter limits actions to rate per second.
func newRateLimiter(rate float64) *rateLimiter {
	interval := float64(time.Second) / rate
	return &rateLimiter{interval: time.Duration(min(interval, math.MaxInt64/2)), turn: make(chan struct{}, 1)}
}

// run waits for its turn and the interval, then calls act. It returns the error of ctx if that
// ends first.
func (l *rateLimiter) run(ctx context.Context, act func() (hadEffect bool, err error)) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.turn }()
	if err := waitUntil(ctx, l.next); err != nil {
		return err
	}
	hadEffect, err := act()
	if hadEffect {
		l.next = time.Now().Add(l.interval)
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
