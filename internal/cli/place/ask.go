package place

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// atOnce is how many places are asked at the same time.
const atOnce = 50

// Patience is how long one of several members may take to answer.
type Patience struct{ limit time.Duration }

// AddFlag adds the flag that sets it.
func (p *Patience) AddFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&p.limit, "request-timeout", 30*time.Second, "how long each cluster may take to answer; 0 for as long as it wants")
}

// RequestLimit is when a request that was left behind ends: a bit after the place
// was given up, which is what people are told. 0 means never.
func (p *Patience) RequestLimit() time.Duration {
	if p.limit <= 0 {
		return 0
	}
	return p.limit + time.Second
}

// AskAll asks all places, many at a time, and returns what each said, in the order
// of places. One that has not answered in time costs itself an error, and none of
// the others anything; what it says later is dropped. ask should end when its
// context does.
func AskAll[T any](ctx context.Context, places []Place, patience Patience, ask func(context.Context, Place) (T, error)) ([]T, []error) {
	answers, errs := make([]T, len(places)), make([]error, len(places))
	turns := make(chan struct{}, atOnce)
	var asking sync.WaitGroup
	for i, where := range places {
		asking.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			answers[i], errs[i] = within(ctx, patience.limit, where, ask)
		})
	}
	asking.Wait()
	return answers, errs
}

// within returns what a place says within the limit.
func within[T any](ctx context.Context, limit time.Duration, where Place, ask func(context.Context, Place) (T, error)) (answer T, err error) {
	if limit > 0 {
		late := fmt.Errorf("no answer from %s within %s; --request-timeout sets how long to wait", where, limit)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, late)
		defer cancel()
	}
	type said struct {
		answer T
		err    error
	}
	done := make(chan said, 1)
	go func() {
		answer, err := ask(ctx, where)
		done <- said{answer, err}
	}()
	select {
	case s := <-done:
		if errors.Is(s.err, context.DeadlineExceeded) && ctx.Err() != nil {
			return s.answer, context.Cause(ctx)
		}
		return s.answer, s.err
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
}
