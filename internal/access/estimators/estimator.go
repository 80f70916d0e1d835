package estimators

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/domain/capacity"
)

const (
	// minRetryDelay is the delay between the first failure of an estimator and the next attempt.
	// The delay doubles with each further failure, up to maxRetryDelay.
	minRetryDelay = time.Second
	maxRetryDelay = 30 * time.Second
	// absentRetryDelay is the delay before the next attempt for a cluster without an estimator.
	absentRetryDelay = time.Minute
)

// estimator is the state of the estimator of one cluster. It is in one of these states:
//
//   - connected: connection is set.
//   - unavailable: fallback is set. Requests get the fallback. After a failure, retryTimer starts
//     attempts to open a connection, so that the first request after the end of the failure does not
//     get the fallback. Without an estimator, only a request after retryAt starts an attempt.
//   - unknown: neither is set. Requests wait for the first attempt.
type estimator struct {
	pool    *Pool
	cluster string

	mu         sync.Mutex
	connection *connection
	fallback   *capacity.Estimate
	retryAt    time.Time
	// retryTimer is nil if no attempt is planned.
	retryTimer *time.Timer
	// opening is closed at the end of the running attempt. It is nil if there is none.
	opening chan struct{}
	// failures is the number of failures since the last response.
	failures int
	// isFailing reports whether the last request or attempt failed.
	isFailing bool
	isClosed  bool
}

// connect returns the connection, or nil and the estimate to use without a connection.
func (e *estimator) connect(ctx context.Context) (*connection, capacity.Estimate) {
	for {
		c, unavailable, opening := e.current()
		if opening == nil {
			return c, unavailable
		}
		select {
		case <-opening:
		case <-ctx.Done():
			return nil, e.stopWaiting(ctx, opening)
		}
	}
}

// current returns either the connection, or the estimate to use without a connection, or a channel
// to wait for. It starts an attempt to open a connection if one is due.
func (e *estimator) current() (c *connection, unavailable capacity.Estimate, opening <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isClosed {
		return nil, capacity.Estimate{Count: capacity.Unknown}, nil
	}
	if e.connection != nil {
		return e.connection, capacity.Estimate{}, nil
	}
	e.openIfDue()
	if e.fallback != nil {
		return nil, *e.fallback, nil
	}
	return nil, capacity.Estimate{}, e.opening
}

// openIfDue starts an attempt to open a connection if one is due. The caller holds the lock.
func (e *estimator) openIfDue() {
	if e.connection != nil || e.opening != nil || e.pool.now().Before(e.retryAt) {
		return
	}
	attempt := make(chan struct{})
	e.opening = attempt
	e.pool.openings.Go(func() { e.open(attempt) })
}

// openLater plans an attempt to open a connection. The caller holds the lock.
func (e *estimator) openLater(delay time.Duration) {
	e.stopTimer()
	var timer *time.Timer
	timer = time.AfterFunc(delay, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.retryTimer == timer {
			e.retryTimer = nil
			e.openIfDue()
		}
	})
	e.retryTimer = timer
}

// stopTimer cancels a planned attempt. The caller holds the lock.
func (e *estimator) stopTimer() {
	if e.retryTimer != nil {
		e.retryTimer.Stop()
		e.retryTimer = nil
	}
}

// stopWaiting ends the wait of a request for the first attempt. After the deadline of one request,
// other requests do not wait for this attempt.
func (e *estimator) stopWaiting(ctx context.Context, opening <-chan struct{}) capacity.Estimate {
	unavailable := capacity.Estimate{Err: context.Cause(ctx)}
	e.mu.Lock()
	defer e.mu.Unlock()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && e.opening == opening && e.fallback == nil {
		e.fallback = &unavailable
		e.setFailing(unavailable.Err)
	}
	return unavailable
}

// open runs one attempt to open a connection.
func (e *estimator) open(attempt chan struct{}) {
	defer close(attempt)
	c, err := e.pool.open(e.pool.ctx, e.cluster)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.opening != attempt {
		c.close() // the address changed, or the cluster is deleted
		return
	}
	e.opening = nil
	switch {
	case err == nil:
		e.connection, e.fallback = c, nil
	case errors.Is(err, errNoEstimator):
		e.failures, e.retryAt, e.fallback = 0, e.pool.now().Add(absentRetryDelay), &capacity.Estimate{Count: capacity.Unknown}
		e.isFailing = false
		e.pool.options.Metrics.forget(e.cluster)
	default:
		e.fail(err)
	}
}

// recordAnswer records that the estimator responded. err is the error that it returned, or nil.
func (e *estimator) recordAnswer(err error) {
	e.pool.options.Metrics.countRequest(e.cluster, err)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failures = 0
	e.setFailing(err)
}

// recordFailure records that a request failed. If there was no response, the connection is closed, so
// that later requests do not wait.
func (e *estimator) recordFailure(ctx context.Context, c *connection, err error) {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return // the caller ended the request
	case !errors.Is(err, errUnavailable) && ctx.Err() == nil:
		e.recordAnswer(err)
		return
	}
	e.pool.options.Metrics.countRequest(e.cluster, err)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.connection == c {
		e.connection = nil
		e.fail(err)
	}
	c.close()
}

// fail makes the estimator unavailable. The caller holds the lock.
func (e *estimator) fail(err error) {
	e.failures++
	delay := retryDelay(e.failures)
	e.retryAt, e.fallback = e.pool.now().Add(delay), &capacity.Estimate{Err: err}
	e.openLater(delay)
	e.setFailing(err)
}

// retryDelay returns the delay after a number of failures, at least one.
func retryDelay(failures int) time.Duration {
	delay := minRetryDelay
	for ; failures > 1 && delay < maxRetryDelay; failures-- {
		delay *= 2
	}
	return min(delay, maxRetryDelay)
}

// setFailing logs the begin and the end of failures. The caller holds the lock.
func (e *estimator) setFailing(err error) {
	if e.isClosed {
		return
	}
	e.pool.options.Metrics.setFailing(e.cluster, err != nil)
	if e.isFailing == (err != nil) {
		return
	}
	e.isFailing = err != nil
	if logger := klog.FromContext(e.pool.ctx); err != nil {
		logger.Info("The estimator of a cluster fails; its estimates are not used", "member", e.cluster, "cause", err.Error())
	} else {
		logger.Info("The estimator of a cluster responds again", "member", e.cluster)
	}
}

// reset closes the connection and forgets all failures, because the address of the estimator may
// have changed. The next request opens a connection.
func (e *estimator) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.connection != nil {
		e.connection.close()
	}
	e.stopTimer()
	e.connection, e.fallback, e.opening, e.failures, e.retryAt = nil, nil, nil, 0, time.Time{}
}

// close closes the connection. Later requests have no estimate.
func (e *estimator) close() {
	e.reset()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.isClosed = true
	e.pool.options.Metrics.forget(e.cluster)
}

// isUnavailable reports whether an error means that the estimator did not respond.
func isUnavailable(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	default:
		return false
	}
}
