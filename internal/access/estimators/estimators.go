// Package estimators asks several estimators how many more replicas, or sets of components, fit into
// clusters, and combines their estimates. It also holds the connections to the accurate estimators.
//
// Invariants:
//   - Estimators are asked concurrently. A slow estimator delays the result until its own deadline,
//     and does not delay other estimators.
//   - If an estimator fails for some clusters, its estimates for the other clusters are used.
//   - The result depends only on the responses, and not on the order in which they arrive.
package estimators

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/capacity"
)

// Report receives the estimate for one cluster, identified by its index in the request. It may be
// called concurrently. Estimates after the deadline are dropped.
type Report func(cluster int, estimate capacity.Estimate)

// Estimator estimates the free capacity of clusters.
type Estimator interface {
	// Estimate calls report for a cluster as soon as it knows how much more of the demand fits into
	// that cluster. It returns after the last report, or soon after the context ends. A cluster
	// without a report has no estimate. The arguments must not be modified.
	Estimate(ctx context.Context, demand capacity.Demand, clusters []*clusterv1alpha1.Cluster, report Report)
}

// Row is the entry of one estimator in the table of estimators.
type Row struct {
	// Name appears in messages to users. It is unique in a table and not empty.
	Name string
	// Timeout limits the time for the estimates of all clusters together. Zero is for estimators
	// that only read memory: such an estimator has no deadline and runs in the goroutine of the
	// caller.
	Timeout   time.Duration
	Estimator Estimator
}

var (
	// errNoReport is the error for a cluster for which an estimator reported nothing.
	errNoReport = errors.New("the estimator returned no estimate")
	errPanicked = errors.New("the estimator panicked")
)

// Ask asks all estimators of the table for the capacity of the clusters. It returns one limit for
// each cluster, in the order of the clusters. It returns at the latest after the longest timeout.
func Ask(ctx context.Context, table []Row, demand capacity.Demand, clusters []*clusterv1alpha1.Cluster) []capacity.Limit {
	waits := make([]func() []capacity.Estimate, len(table))
	for i := range table {
		if table[i].Timeout > 0 {
			waits[i] = table[i].start(ctx, demand, clusters)
		}
	}
	for i := range table {
		if waits[i] == nil {
			collector := newEstimateCollector(len(clusters))
			table[i].Estimator.Estimate(ctx, demand, clusters, collector.add)
			waits[i] = func() []capacity.Estimate { return collector.close(context.Cause(ctx)) }
		}
	}
	limits := make([]capacity.Limit, len(clusters))
	for i, wait := range waits {
		for cluster, estimate := range wait() {
			limits[cluster].Add(table[i].Name, estimate)
		}
	}
	return limits
}

// start asks an estimator in a new goroutine. The returned function waits until the estimator
// returns, its deadline is reached, or the context ends.
func (r *Row) start(ctx context.Context, demand capacity.Demand, clusters []*clusterv1alpha1.Cluster) (wait func() []capacity.Estimate) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("no response within %s", r.Timeout))
	collector, returned := newEstimateCollector(len(clusters)), make(chan struct{})
	go func() {
		defer close(returned)
		defer collector.recoverPanic(ctx)
		r.Estimator.Estimate(ctx, demand, clusters, collector.add)
	}()
	return func() []capacity.Estimate {
		defer cancel()
		select {
		case <-returned:
		case <-ctx.Done():
		}
		return collector.close(context.Cause(ctx))
	}
}

// estimateCollector holds the estimates of one estimator, in the order of the clusters.
type estimateCollector struct {
	mu        sync.Mutex
	estimates []capacity.Estimate
	isClosed  bool
}

func newEstimateCollector(clusters int) *estimateCollector {
	c := &estimateCollector{estimates: make([]capacity.Estimate, clusters)}
	for i := range c.estimates {
		c.estimates[i].Err = errNoReport
	}
	return c
}

// add implements Report.
func (c *estimateCollector) add(cluster int, estimate capacity.Estimate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isClosed {
		c.estimates[cluster] = estimate
	}
}

// recoverPanic converts a panic of an estimator to an error for each cluster that the estimator has
// not reported. It must be called directly by defer.
func (c *estimateCollector) recoverPanic(ctx context.Context) {
	if r := recover(); r != nil {
		err := fmt.Errorf("%w: %v", errPanicked, r)
		klog.FromContext(ctx).Error(err, "Recovered from a panic")
		c.close(err)
	}
}

// close returns the estimates, and makes later calls of add do nothing. If cause is not nil, it
// becomes the error of the clusters without an estimate.
func (c *estimateCollector) close(cause error) []capacity.Estimate {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isClosed = true
	for i := range c.estimates {
		if cause != nil && c.estimates[i].Err == errNoReport { //nolint:errorlint // an estimator cannot return this value
			c.estimates[i].Err = cause
		}
	}
	return c.estimates
}
