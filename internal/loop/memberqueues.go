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
// ErrAwaitsRecovery only by RetryNow. A result with RequeueAfter is reconciled again after that
// time.
type MemberReconcileFunc func(ctx context.Context, cluster string, key types.NamespacedName) (reconcile.Result, error)

// MemberQueueOptions configure the queues.
type MemberQueueOptions struct {
	// Name appears in logs and in the names of the queue metrics.
	Name string
	// Workers is the number of objects of one cluster that are reconciled at once.
	Workers int
	// Backoff is the backoff for one object.
	Backoff Backoff
	// IsServed reports whether a cluster exists and is served by this process. A nil function means
	// that every cluster is served. The queues call it before they create a queue, so that a late
	// event of a removed cluster creates no queue. It must return quickly, and must return false
	// for a cluster before RemoveCluster is called for that cluster.
	IsServed func(ctx context.Context, cluster string) bool
	// OnRemoved deletes the state in memory about a cluster. It is called after RemoveCluster, when
	// the last worker of the cluster has returned, so that no pass adds state again. It is not
	// called if the cluster was added again meanwhile. It must return quickly and not call the
	// queues. It may be nil.
	OnRemoved func(cluster string)
}

// MemberQueues holds one queue with its workers for each cluster.
type MemberQueues struct {
	options   MemberQueueOptions
	reconcile MemberReconcileFunc

	mu      sync.Mutex
	queues  map[string]*memberQueue
	pending map[pendingKey]priorityqueue.AddOpts
	ctx     context.Context //nolint:containedctx // queues start when their cluster appears, with the context given to Start
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
	// waitingKeys are the keys whose last reconcile failed or requested a later reconcile. RetryNow
	// reconciles them at once.
	waitingKeys map[types.NamespacedName]struct{}
	// recoveries is the number of calls of RetryNow.
	recoveries int
}

// NewMemberQueues returns queues that call reconcile for each queued key.
func NewMemberQueues(options MemberQueueOptions, reconcile MemberReconcileFunc) *MemberQueues {
	return &MemberQueues{
		options: options, reconcile: reconcile,
		queues: map[string]*memberQueue{}, pending: map[pendingKey]priorityqueue.AddOpts{},
	}
}

// Start runs the queues until ctx ends, and waits for their workers.
func (q *MemberQueues) Start(ctx context.Context) error {
	q.mu.Lock()
	q.ctx = ctx
	pending := q.pending
	q.pending = nil
	q.mu.Unlock()
	for item, opts := range pending {
		q.add(item, opts)
	}
	<-ctx.Done()
	q.mu.Lock()
	for _, member := range q.queues {
		member.queue.ShutDown()
	}
	q.mu.Unlock()
	q.wg.Wait()
	return nil
}

// Add queues a key of a cluster with a priority and a delay.
func (q *MemberQueues) Add(cluster string, key types.NamespacedName, priority int, delay time.Duration) {
	q.add(pendingKey{cluster: cluster, key: key}, priorityqueue.AddOpts{Priority: &priority, After: delay})
}

func (q *MemberQueues) add(item pendingKey, opts priorityqueue.AddOpts) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ctx == nil {
		if known, ok := q.pending[item]; !ok || *known.Priority < *opts.Priority {
			q.pending[item] = opts
		}
		return
	}
	if q.ctx.Err() != nil {
		return
	}
	if member := q.getOrCreateQueue(item.cluster); member != nil {
		member.queue.AddWithOpts(opts, item.key)
	}
}

// RetryNow reconciles at once all keys of a cluster whose last reconcile failed or requested a
// later reconcile, because the cluster is reachable again or because a user decided about its
// objects.
func (q *MemberQueues) RetryNow(cluster string) {
	q.mu.Lock()
	member := q.queues[cluster]
	q.mu.Unlock()
	if member == nil {
		return
	}
	member.mu.Lock()
	member.recoveries++
	keys := slices.Collect(maps.Keys(member.waitingKeys))
	member.mu.Unlock()
	for _, key := range keys {
		member.queue.Forget(key)
		member.queue.Add(key)
	}
}

// RemoveCluster stops the workers of a cluster that was deleted or is no longer served.
func (q *MemberQueues) RemoveCluster(cluster string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	removed := q.queues[cluster]
	if removed != nil {
		removed.cancel()
		removed.queue.ShutDown()
		delete(q.queues, cluster)
	}
	if q.options.OnRemoved == nil {
		return
	}
	if removed == nil {
		q.options.OnRemoved(cluster)
		return
	}
	go func() {
		removed.workers.Wait()
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.queues[cluster] == nil {
			q.options.OnRemoved(cluster)
		}
	}()
}

// getOrCreateQueue returns the queue of a cluster, or nil if the cluster is not served. The caller
// holds q.mu, so that a later RemoveCluster for this cluster finds the new queue.
func (q *MemberQueues) getOrCreateQueue(cluster string) *memberQueue {
	if existing, ok := q.queues[cluster]; ok {
		return existing
	}
	if q.options.IsServed != nil && !q.options.IsServed(q.ctx, cluster) {
		return nil
	}
	return q.startQueue(q.ctx, cluster)
}

// startQueue starts the workers of a cluster. They run until ctx ends or the cluster is removed.
// The caller holds q.mu.
func (q *MemberQueues) startQueue(ctx context.Context, cluster string) *memberQueue {
	ctx, cancel := context.WithCancel(ctx)
	created := &memberQueue{
		cancel:      cancel,
		waitingKeys: map[types.NamespacedName]struct{}{},
		queue: WithSafeShutdown(priorityqueue.New(q.options.Name, func(o *priorityqueue.Opts[types.NamespacedName]) {
			o.RateLimiter = NewRateLimiter[types.NamespacedName](q.options.Backoff)
			o.MetricProvider = noMetrics{}
		})),
	}
	q.queues[cluster] = created
	for range q.options.Workers {
		created.workers.Add(1)
		q.wg.Go(func() {
			defer created.workers.Done()
			q.runWorker(ctx, cluster, created)
		})
	}
	return created
}

func (q *MemberQueues) runWorker(ctx context.Context, cluster string, member *memberQueue) {
	for {
		key, priority, shutdown := member.queue.GetWithPriority()
		if shutdown {
			return
		}
		q.processKey(ctx, cluster, member, key, priority)
	}
}

func (q *MemberQueues) processKey(ctx context.Context, cluster string, member *memberQueue, key types.NamespacedName, priority int) {
	defer member.queue.Done(key)
	logger := klog.FromContext(ctx).WithValues("controller", q.options.Name, "member", cluster, "object", key)
	recoveries := member.recoveryCount()
	result, err := q.reconcileSafely(klog.NewContext(ctx, logger), cluster, key)
	if ctx.Err() != nil {
		return
	}
	hasRecovered := member.recordOutcome(key, err != nil || result.RequeueAfter > 0) > recoveries
	switch {
	case errors.Is(err, ErrAwaitsRecovery) && !hasRecovered:
		member.queue.Forget(key)
	case err != nil:
		logger.V(2).Info("Reconcile will be retried", "cause", err)
		member.queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: &priority}, key)
	case result.RequeueAfter > 0:
		delay := result.RequeueAfter
		if hasRecovered {
			delay = 0
		}
		member.queue.Forget(key)
		member.queue.AddWithOpts(priorityqueue.AddOpts{After: delay, Priority: &priority}, key)
	default:
		member.queue.Forget(key)
	}
}

var errPanicked = errors.New("the reconciler panicked")

// reconcileSafely calls the reconcile function and converts a panic into an error, because a bug
// with one object must not stop the delivery of all other objects.
func (q *MemberQueues) reconcileSafely(ctx context.Context, cluster string, key types.NamespacedName) (result reconcile.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("handling %s of member %q: %w: %v", key, cluster, errPanicked, r)
			klog.FromContext(ctx).Error(err, "Recovered from a panic")
		}
	}()
	return q.reconcile(ctx, cluster, key)
}

func (m *memberQueue) recoveryCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.recoveries
}

// recordOutcome records whether the key waits for another reconcile, and returns the recovery
// count. If the count grew during the reconcile, RetryNow did not retry the key.
func (m *memberQueue) recordOutcome(key types.NamespacedName, isWaiting bool) (recoveries int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if isWaiting {
		m.waitingKeys[key] = struct{}{}
	} else {
		delete(m.waitingKeys, key)
	}
	return m.recoveries
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
