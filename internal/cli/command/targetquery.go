package command

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// maxParallelQueries is the maximum number of targets that are queried concurrently.
const maxParallelQueries = 50

// RequestTimeout is the time limit for the response of each of several members.
type RequestTimeout struct{ limit time.Duration }

// AddFlag adds the flag --request-timeout.
func (r *RequestTimeout) AddFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&r.limit, "request-timeout", 30*time.Second, "how long each cluster may take to answer; 0 means no timeout")
}

// HTTPTimeout is the timeout of the HTTP request. It is one second longer than the limit, so that
// the user sees the error of QueryAll. 0 means no timeout.
func (r *RequestTimeout) HTTPTimeout() time.Duration {
	if r.limit <= 0 {
		return 0
	}
	return r.limit + time.Second
}

// QueryAll queries all targets in parallel and returns their results in the order of targets. If a
// target does not respond in time, its error is set, its late result is dropped, and the other
// targets are not delayed. query should return when its context ends.
func QueryAll[T any](ctx context.Context, targets []Target, timeout RequestTimeout, query func(context.Context, Target) (T, error)) ([]T, []error) {
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

// queryWithTimeout returns the result of one target, or an error after the time limit.
func queryWithTimeout[T any](ctx context.Context, limit time.Duration, target Target, query func(context.Context, Target) (T, error)) (result T, err error) {
	if limit > 0 {
		timeoutErr := fmt.Errorf("no answer from %s within %s; --request-timeout sets how long to wait", target, limit)
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
