package tainteviction

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/loop"
)

// evictionMetrics are the metrics of evictions.
type evictionMetrics struct {
	queueDepth, queuedByKind *prometheus.GaugeVec
	latency                  *prometheus.HistogramVec
	processed                *prometheus.CounterVec
}

// newEvictionMetrics registers the metrics. If another control plane in this process has registered
// them, it returns the registered metrics.
func newEvictionMetrics(registry prometheus.Registerer) (evictionMetrics, error) {
	m := evictionMetrics{
		queueDepth: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "eviction_queue_depth", Help: "Bindings in the queue to be checked against the taints of a cluster, or to be evicted.",
		}, []string{"name"}),
		queuedByKind: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "eviction_kind_total", Help: "Bindings in the queue to be checked against the taints of a cluster, or to be evicted, by the kind of their objects.",
		}, []string{"member_cluster", "resource_kind"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "eviction_processing_latency_seconds", Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
			Help: "Duration in seconds of one eviction, without its time in the queue.",
		}, []string{"name"}),
		processed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eviction_processing_total", Help: "Evictions for taints, including failed ones.",
		}, []string{"name", "result"}),
	}
	err := errors.Join(
		loop.RegisterMetric(registry, &m.queueDepth), loop.RegisterMetric(registry, &m.queuedByKind),
		loop.RegisterMetric(registry, &m.latency), loop.RegisterMetric(registry, &m.processed),
	)
	return m, err
}

// observeEviction counts one eviction.
func (e evictionMetrics) observeEviction(queue string, duration time.Duration, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	e.latency.WithLabelValues(queue).Observe(duration.Seconds())
	e.processed.WithLabelValues(queue, result).Inc()
}

// backlog counts the queued requests. Like the queue, it counts each request only once. If no
// request is queued for a cluster and a kind, backlog deletes the series of that count, because
// clusters are added and removed.
type backlog struct {
	metrics evictionMetrics
	name    string

	mu     sync.Mutex
	queued map[request]string
	counts map[countKey]int
}

// countKey identifies a count by cluster and kind.
type countKey struct{ cluster, kind string }

func newBacklog(metrics evictionMetrics, name string) *backlog {
	return &backlog{metrics: metrics, name: name, queued: map[request]string{}, counts: map[countKey]int{}}
}

func (b *backlog) add(req request, kind string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, isQueued := b.queued[req]; isQueued {
		return
	}
	b.queued[req] = kind
	b.addCount(countKey{req.cluster, kind}, 1)
	b.metrics.queueDepth.WithLabelValues(b.name).Set(float64(len(b.queued)))
}

func (b *backlog) remove(req request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kind, isQueued := b.queued[req]
	if !isQueued {
		return
	}
	delete(b.queued, req)
	b.addCount(countKey{req.cluster, kind}, -1)
	b.metrics.queueDepth.WithLabelValues(b.name).Set(float64(len(b.queued)))
}

func (b *backlog) addCount(key countKey, delta int) {
	b.counts[key] += delta
	if b.counts[key] > 0 {
		b.metrics.queuedByKind.WithLabelValues(key.cluster, key.kind).Set(float64(b.counts[key]))
		return
	}
	delete(b.counts, key)
	b.metrics.queuedByKind.DeleteLabelValues(key.cluster, key.kind)
}
