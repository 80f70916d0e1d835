package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ErrAwaitsRecovery is the error of a pass that can succeed only after the next RetryNow.
var ErrAwaitsRecovery = errors.New("the object waits until the cluster recovers")

// MemberReconcileFunc reconciles one object of one cluster. An error is retried with backoff, and
// ErrAwaitsRecovery only by RetryNow. A result with RequeueAfter is reconciled again after that time.
type MemberReconcileFunc func(ctx context.Context, cluster string, key types.NamespacedName) (reconcile.Result, error)

// MemberQueueOptions configure the pools.
type MemberQueueOptions struct {
	// Name appears in logs and in the names of the queue metrics.
	Name string
	// Workers is the number of objects of one cluster that are reconciled at once.
	Workers int
	// Backoff is the backoff for one object.
	Backoff Backoff
	// IsServed reports whether a cluster exists and is served by this process. A nil function means
	// that every cluster is served. The pools call it before they create a pool, so that a late
	// event of a removed cluster creates no pool. It must return quickly, and must return false for
	// a cluster before RemoveCluster is called for that cluster.
	IsServed func(ctx context.Context, cluster string) bool
	// OnRemoved deletes the state in memory about a cluster. It is called after RemoveCluster, when the
	// last worker of the cluster has returned, so that no pass adds state again. It is not called if
	// the cluster was added again meanwhile. It must return quickly and not call the pools. It may be
	// nil.
	OnRemoved func(cluster string)
}

// MemberQueues holds one queue with its workers for each cluster.
type MemberQueues struct {
	options   MemberQueueOptions
	reconcile MemberReconcileFunc

	mu      sync.Mutex
	pools   map[string]*memberQueue
	pending map[pendingKey]priorityqueue.AddOpts
	ctx     context.Context //nolint:containedctx // pools start when their cluster appears, with the context given to Start
	wg      sync.WaitGroup
}

type pendingKey struct {
	cluster string
	key     types.NamespacedName
}

type memberQueue struct {
	queue   priorityqueue.PriorityQueue[types.NamespacedName]
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu sync.Mutex
	// waitingKeys are the keys whose last reconcile failed or asked for a later reconcile. RetryNow
	// reconciles them at once.
	waitingKeys map[types.NamespacedName]struct{}
	// recoveries is the number of calls of RetryNow.
	recoveries int
}

// New returns pools that call reconcile for each queued key.
func NewMemberQueues(options MemberQueueOptions, reconcile MemberReconcileFunc) *MemberQueues {
	return &MemberQueues{
		options: options, reconcile: reconcile,
		pools: map[string]*memberQueue{}, pending: map[pendingKey]priorityqueue.AddOpts{},
	}
}

// Start runs the pools until ctx ends, and waits for their workers.
func (p *MemberQueues) Start(ctx context.Context) error {
	p.mu.Lock()
	p.ctx = ctx
	pending := p.pending
	p.pending = nil
	p.mu.Unlock()
	for item, opts := range pending {
		p.add(item, opts)
	}
	<-ctx.Done()
	p.mu.Lock()
	for _, pool := range p.pools {
		pool.queue.ShutDown()
	}
	p.mu.Unlock()
	p.wg.Wait()
	return nil
}

// Add queues a key of a cluster with a priority and a delay.
func (p *MemberQueues) Add(cluster string, key types.NamespacedName, priority int, delay time.Duration) {
	p.add(pendingKey{cluster: cluster, key: key}, priorityqueue.AddOpts{Priority: &priority, After: delay})
}

func (p *MemberQueues) add(item pendingKey, opts priorityqueue.AddOpts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx == nil {
		if known, ok := p.pending[item]; !ok || *known.Priority < *opts.Priority {
			p.pending[item] = opts
		}
		return
	}
	if p.ctx.Err() != nil {
		return
	}
	if pool := p.getOrCreatePool(item.cluster); pool != nil {
		pool.queue.AddWithOpts(opts, item.key)
	}
}

// RetryNow reconciles at once all keys of a cluster whose last reconcile failed or asked for a later
// reconcile, because the cluster is reachable again or because a user decided about its objects.
func (p *MemberQueues) RetryNow(cluster string) {
	p.mu.Lock()
	pool := p.pools[cluster]
	p.mu.Unlock()
	if pool == nil {
		return
	}
	pool.mu.Lock()
	pool.recoveries++
	keys := slices.Collect(maps.Keys(pool.waitingKeys))
	pool.mu.Unlock()
	for _, key := range keys {
		pool.queue.Forget(key)
		pool.queue.Add(key)
	}
}

// RemoveCluster stops the workers of a cluster that was deleted or is no longer served.
func (p *MemberQueues) RemoveCluster(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	removed := p.pools[cluster]
	if removed != nil {
		removed.cancel()
		removed.queue.ShutDown()
		delete(p.pools, cluster)
	}
	if p.options.OnRemoved == nil {
		return
	}
	if removed == nil {
		p.options.OnRemoved(cluster)
		return
	}
	go func() {
		removed.workers.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.pools[cluster] == nil {
			p.options.OnRemoved(cluster)
		}
	}()
}

// getOrCreatePool returns the pool of a cluster, or nil if the cluster is not served. The caller
// holds p.mu, so that a later RemoveCluster for this cluster finds the new pool.
func (p *MemberQueues) getOrCreatePool(cluster string) *memberQueue {
	if existing, ok := p.pools[cluster]; ok {
		return existing
	}
	if p.options.IsServed != nil && !p.options.IsServed(p.ctx, cluster) {
		return nil
	}
	return p.startPool(p.ctx, cluster)
}

// startPool starts the workers of a cluster. They run until ctx ends or the cluster is removed. The
// caller holds p.mu.
func (p *MemberQueues) startPool(ctx context.Context, cluster string) *memberQueue {
	ctx, cancel := context.WithCancel(ctx)
	created := &memberQueue{
		cancel:      cancel,
		waitingKeys: map[types.NamespacedName]struct{}{},
		queue: WithSafeShutdown(priorityqueue.New(p.options.Name, func(o *priorityqueue.Opts[types.NamespacedName]) {
			o.RateLimiter = NewRateLimiter[types.NamespacedName](p.options.Backoff)
			o.MetricProvider = noMetrics{}
		})),
	}
	p.pools[cluster] = created
	for range p.options.Workers {
		created.workers.Add(1)
		p.wg.Go(func() {
			defer created.workers.Done()
			p.runWorker(ctx, cluster, created)
		})
	}
	return created
}

func (p *MemberQueues) runWorker(ctx context.Context, cluster string, pool *memberQueue) {
	for {
		key, priority, shutdown := pool.queue.GetWithPriority()
		if shutdown {
			return
		}
		p.handle(ctx, cluster, pool, key, priority)
	}
}

func (p *MemberQueues) handle(ctx context.Context, cluster string, pool *memberQueue, key types.NamespacedName, priority int) {
	defer pool.queue.Done(key)
	logger := klog.FromContext(ctx).WithValues("controller", p.options.Name, "member", cluster, "object", key)
	recoveries := pool.recoveryCount()
	result, err := p.reconcileSafely(klog.NewContext(ctx, logger), cluster, key)
	if ctx.Err() != nil {
		return
	}
	hasRecovered := pool.recordOutcome(key, err != nil || result.RequeueAfter > 0) > recoveries
	switch {
	case errors.Is(err, ErrAwaitsRecovery) && !hasRecovered:
		pool.queue.Forget(key)
	case err != nil:
		logger.V(2).Info("Reconcile will be retried", "cause", err)
		pool.queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: &priority}, key)
	case result.RequeueAfter > 0:
		delay := result.RequeueAfter
		if hasRecovered {
			delay = 0
		}
		pool.queue.Forget(key)
		pool.queue.AddWithOpts(priorityqueue.AddOpts{After: delay, Priority: &priority}, key)
	default:
		pool.queue.Forget(key)
	}
}

var errPanicked = errors.New("the reconciler panicked")

// reconcileSafely calls the reconcile function and converts a panic into an error, because a bug
// with one object must not stop the delivery of all other objects.
func (p *MemberQueues) reconcileSafely(ctx context.Context, cluster string, key types.NamespacedName) (result reconcile.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("handling %s of member %q: %w: %v", key, cluster, errPanicked, r)
			klog.FromContext(ctx).Error(err, "Recovered from a panic")
		}
	}()
	return p.reconcile(ctx, cluster, key)
}

func (p *memberQueue) recoveryCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.recoveries
}

// recordOutcome records whether the key waits for another reconcile, and returns the recovery count. If
// the count grew during the reconcile, RetryNow did not retry the key.
func (p *memberQueue) recordOutcome(key types.NamespacedName, isWaiting bool) (recoveries int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isWaiting {
		p.waitingKeys[key] = struct{}{}
	} else {
		delete(p.waitingKeys, key)
	}
	return p.recoveries
}

// noMetrics keeps the queues of clusters out of the metrics, because the number of clusters is not
// limited. The controllers have their own metrics per member.
type noMetrics struct{}

type noopMetric struct{}

func (noopMetric) Inc()            {}
func (noopMetric) Dec()            {}
func (noopMetric) Set(float64)     {}
func (noopMetric) Observe(float64) {}

func (noMetrics) NewDepthMetric(string) workqueue.GaugeMetric            { return noopMetric{} }
func (noMetrics) NewAddsMetric(string) workqueue.CounterMetric           { return noopMetric{} }
func (noMetrics) NewLatencyMetric(string) workqueue.HistogramMetric      { return noopMetric{} }
func (noMetrics) NewWorkDurationMetric(string) workqueue.HistogramMetric { return noopMetric{} }
func (noMetrics) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return noopMetric{}
}
func (noMetrics) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return noopMetric{}
}
func (noMetrics) NewRetriesMetric(string) workqueue.CounterMetric { return noopMetric{} }
