package tainteviction

import (
	"context"
	"math"
	"time"
)

// pace lets one after the other act, and after each that did acts no sooner than a
// step later. Who finds nothing to do costs nothing.
type pace struct {
	step time.Duration
	// turn is held by whoever acts or is the next to.
	turn chan struct{}
	// next is when to act again, written by whoever has the turn.
	next time.Time
}

// newPace acts rate times a second, at most.
func newPace(rate float64) *pace {
	step := float64(time.Second) / rate
	return &pace{step: time.Duration(min(step, math.MaxInt64/2)), turn: make(chan struct{}, 1)}
}

// do waits until it is time and acts. It returns the error of ctx if that ends
// sooner.
func (p *pace) do(ctx context.Context, act func() (acted bool, err error)) error {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.turn }()
	if err := until(ctx, p.next); err != nil {
		return err
	}
	acted, err := act()
	if acted {
		p.next = time.Now().Add(p.step)
	}
	return err
}

func until(ctx context.Context, at time.Time) error {
	wait := time.NewTimer(time.Until(at))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
