package command

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// maxParallelQueries limits how many targets are queried at the same time.
const maxParallelQueries = 50

// RequestTimeout is the time limit for each member's response.
type RequestTimeout struct{ limit time.Duration }

// AddFlag adds the flag --request-timeout.
func (r *RequestTimeout) AddFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&r.limit, "request-timeout", 30*time.Second, "time limit for the response of each cluster; 0 means no limit")
}

// HTTPTimeout returns the timeout for HTTP requests. It is one second longer than the limit, so that QueryAll
// times out first and the user sees its error. 0 means no timeout.
func (r *RequestTimeout) HTTPTimeout() time.Duration {
	if r.limit <= 0 {
		return 0
	}
	return r.limit + time.Second
}

// QueryAll queries all targets in parallel, and returns their results and errors in the order of targets. A target
// that does not respond in time gets an error and does not delay the other targets. query should return when its
// context ends; QueryAll drops a result that comes later.
func QueryAll[T any](ctx context.Context, targets []Target, timeout RequestTimeout,
	query func(context.Context, Target) (T, error)) ([]T, []error) {
	results, errs := make([]T, len(targets)), make([]error, len(targets))
	slots := make(chan struct{}, maxParallelQueries)
	var queries sync.WaitGroup
	for i, target := range targets {
		queries.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i], errs[i] = queryWithTimeout(ctx, timeout.limit, target, query)
		})
	}
	queries.Wait()
	return results, errs
}

// queryWithTimeout returns the target's result, or an error when the limit is over.
func queryWithTimeout[T any](ctx context.Context, limit time.Duration, target Target,
	query func(context.Context, Target) (T, error)) (result T, err error) {
	if limit > 0 {
		timeoutErr := fmt.Errorf("no response from %s within %s; --request-timeout sets the limit", target, limit)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, timeoutErr)
		defer cancel()
	}
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := query(ctx, target)
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		if errors.Is(o.err, context.DeadlineExceeded) && ctx.Err() != nil {
			return o.result, context.Cause(ctx)
		}
		return o.result, o.err
	case <-ctx.Done():
		return result, context.Cause(ctx)
	}
}
