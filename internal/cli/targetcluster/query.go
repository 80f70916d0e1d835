package targetcluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// maxParallelQueries is how many targets are queried at the same time.
const maxParallelQueries = 50

// RequestTimeout is how long each of several members may take to answer.
type RequestTimeout struct{ limit time.Duration }

// AddFlag adds the flag --request-timeout.
func (t *RequestTimeout) AddFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&t.limit, "request-timeout", 30*time.Second, "how long each cluster may take to answer; 0 means no timeout")
}

// HTTPTimeout is the timeout of the HTTP request. It ends one second after the limit, so
// that the user sees the error of QueryAll. 0 means no timeout.
func (t *RequestTimeout) HTTPTimeout() time.Duration {
	if t.limit <= 0 {
		return 0
	}
	return t.limit + time.Second
}

// QueryAll queries all targets in parallel and returns their results in the order of
// targets. A target that does not answer in time gets an error and does not delay the
// others; its late result is dropped. query should end with its context.
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
