package tainteviction

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/access/observe"
)

// measurements are what dashboards read about evictions.
type measurements struct {
	depth, kinds *prometheus.GaugeVec
	latency      *prometheus.HistogramVec
	processed    *prometheus.CounterVec
}

// newMeasurements makes the metrics, or finds those that another control plane of
// this process registered.
func newMeasurements(registry prometheus.Registerer) (measurements, error) {
	m := measurements{
		depth: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "eviction_queue_depth", Help: "Bindings that wait to be judged by the taints of a cluster, or to be evicted.",
		}, []string{"name"}),
		kinds: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "eviction_kind_total", Help: "Bindings that wait to be judged by the taints of a cluster, or to be evicted, by the kind of their objects.",
		}, []string{"member_cluster", "resource_kind"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "eviction_processing_latency_seconds", Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
			Help: "Duration in seconds of one eviction, without the time it waited for its turn.",
		}, []string{"name"}),
		processed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eviction_processing_total", Help: "Evictions for taints, those that failed included.",
		}, []string{"name", "result"}),
	}
	err := errors.Join(
		observe.Register(registry, &m.depth), observe.Register(registry, &m.kinds),
		observe.Register(registry, &m.latency), observe.Register(registry, &m.processed),
	)
	return m, err
}

// evicted counts one eviction.
func (m measurements) evicted(queue string, took time.Duration, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	m.latency.WithLabelValues(queue).Observe(took.Seconds())
	m.processed.WithLabelValues(queue, result).Inc()
}

// backlog counts what is queued. The queue holds each request once, and so does
// the backlog. Of a cluster of which nothing is queued nothing is shown: clusters
// come and go.
type backlog struct {
	measured measurements
	name     string

	mu     sync.Mutex
	queued map[request]string
	counts map[share]int
}

// share is the part of what is queued that is of one kind and about one cluster.
type share struct{ cluster, kind string }

func newBacklog(measured measurements, name string) *backlog {
	return &backlog{measured: measured, name: name, queued: map[request]string{}, counts: map[share]int{}}
}

func (b *backlog) put(of request, kind string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.queued[of]; known {
		return
	}
	b.queued[of] = kind
	b.add(share{of.cluster, kind}, 1)
	b.measured.depth.WithLabelValues(b.name).Set(float64(len(b.queued)))
}

func (b *backlog) take(of request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kind, known := b.queued[of]
	if !known {
		return
	}
	delete(b.queued, of)
	b.add(share{of.cluster, kind}, -1)
	b.measured.depth.WithLabelValues(b.name).Set(float64(len(b.queued)))
}

func (b *backlog) add(of share, by int) {
	b.counts[of] += by
	if b.counts[of] > 0 {
		b.measured.kinds.WithLabelValues(of.cluster, of.kind).Set(float64(b.counts[of]))
		return
	}
	delete(b.counts, of)
	b.measured.kinds.DeleteLabelValues(of.cluster, of.kind)
}
