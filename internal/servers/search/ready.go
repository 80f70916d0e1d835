package search

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"
)

// cacheCheck is a readyz check that waits for the caches of members. It succeeds forever after the
// caches were filled once, or after the timeout, because one slow cluster must not make the server
// unavailable.
type cacheCheck struct {
	await   func(ctx context.Context, limit time.Duration)
	timeout time.Duration
	passed  atomic.Bool
}

var errCaching = errors.New("the objects of member clusters are being cached, see --storage-initialization-timeout")

// run waits for the caches.
func (c *cacheCheck) run(ctx context.Context) {
	c.await(ctx, c.timeout)
	c.passed.Store(true)
}

// check implements healthz.HealthChecker.
func (c *cacheCheck) check(*http.Request) error {
	if c.passed.Load() {
		return nil
	}
	return errCaching
}
