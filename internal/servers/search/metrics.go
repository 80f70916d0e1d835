package search

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// maxSources is the number of sources with labels of their own. The other sources share a time series, so that the
// number of time series is bounded.
const maxSources = 2000

// otherLabel is the label value of the sources that share a time series.
const otherLabel = "other"

// reporter reports the contents of the cache. *objectcache.Cache implements it.
type reporter interface {
	Report() []objectcache.SourceReport
}

// openSearchState is the state of one OpenSearch back end.
type openSearchState struct {
	backend  string
	feed     feed.State
	rejected int
}

// metrics are the metrics of the server. They read their values when they are gathered.
type metrics struct {
	cache reporter
	// indexState returns the state of the full-text index. It is nil if there is none.
	indexState func() feed.State
	// openSearch returns the states of the OpenSearch back ends. It is nil if there are none.
	openSearch func() []openSearchState

	registerer prometheus.Registerer
	// mu guards the values between their update and their collection.
	mu                                     sync.Mutex
	objects, bytes                         *prometheus.GaugeVec
	watches, indexLag                      prometheus.Gauge
	openSearchLag, failing, rejectedObject *prometheus.GaugeVec
}

// newMetrics returns the metrics and registers them. A nil registerer registers nothing.
func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Name: "karmada_search_" + name, Help: help}
	}
	source, backend := []string{"cluster", "kind"}, []string{"backend"}
	m := &metrics{
		registerer: registerer,
		objects:    prometheus.NewGaugeVec(gauge("cached_objects", "Cached objects by member cluster and kind."), source),
		bytes: prometheus.NewGaugeVec(gauge("cached_bytes", "Memory of the cached objects in bytes, by member cluster and kind."),
			source),
		watches: prometheus.NewGauge(gauge("proxy_watches", "Open watches of the global proxy.")),
		indexLag: prometheus.NewGauge(gauge("index_lag_seconds",
			"Age in seconds of the oldest change that is not in the full-text index, 0 if there is none.")),
		openSearchLag: prometheus.NewGaugeVec(gauge("opensearch_lag_seconds",
			"Age in seconds of the oldest change that is not in OpenSearch, 0 if there is none."), backend),
		failing: prometheus.NewGaugeVec(gauge("opensearch_failing", "1 if OpenSearch does not accept objects, otherwise 0."), backend),
		rejectedObject: prometheus.NewGaugeVec(gauge("opensearch_rejected_objects", "Objects that OpenSearch rejects for their content or size."),
			backend),
	}
	if registerer == nil {
		return m, nil
	}
	err := registerer.Register(m)
	var registered prometheus.AlreadyRegisteredError
	if errors.As(err, &registered) {
		// Another server in this process, for example in a test, has registered its metrics.
		m.registerer = nil
		return m, nil
	}
	if err != nil {
		return nil, fmt.Errorf("registering the metrics: %w", err)
	}
	return m, nil
}

// Metrics returns the metrics of the server, without those of its libraries.
func Metrics() ([]prometheus.Collector, error) {
	m, err := newMetrics(nil)
	if err != nil {
		return nil, err
	}
	return m.collectors(), nil
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.objects, m.bytes, m.watches, m.indexLag, m.openSearchLag, m.failing, m.rejectedObject}
}

// unregister removes the metrics from their registry.
func (m *metrics) unregister() {
	if m.registerer != nil {
		m.registerer.Unregister(m)
	}
}

// countWatches counts open watches of the global proxy.
func (m *metrics) countWatches(delta int) { m.watches.Add(float64(delta)) }

// Describe implements prometheus.Collector.
func (m *metrics) Describe(described chan<- *prometheus.Desc) {
	for _, collector := range m.collectors() {
		collector.Describe(described)
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(collected chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.updateSources()
	m.updateSinks()
	for _, collector := range m.collectors() {
		collector.Collect(collected)
	}
}

// updateSources reads the sizes of the cache. The largest sources have labels of their own.
func (m *metrics) updateSources() {
	m.objects.Reset()
	m.bytes.Reset()
	if m.cache == nil {
		return
	}
	reports := slices.DeleteFunc(m.cache.Report(), func(r objectcache.SourceReport) bool { return r.State == objectcache.NotServed })
	slices.SortStableFunc(reports, func(a, b objectcache.SourceReport) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for i, report := range reports {
		labels := []string{report.Cluster, report.APIVersion + " " + report.Kind}
		if i >= maxSources {
			labels = []string{otherLabel, otherLabel}
		}
		m.objects.WithLabelValues(labels...).Add(float64(report.Objects))
		m.bytes.WithLabelValues(labels...).Add(float64(report.Bytes))
	}
}

// updateSinks reads the states of the index and of the OpenSearch back ends.
func (m *metrics) updateSinks() {
	if m.indexState != nil {
		m.indexLag.Set(m.indexState().Lag.Seconds())
	}
	m.openSearchLag.Reset()
	m.failing.Reset()
	m.rejectedObject.Reset()
	if m.openSearch == nil {
		return
	}
	for _, state := range m.openSearch() {
		m.openSearchLag.WithLabelValues(state.backend).Set(state.feed.Lag.Seconds())
		m.rejectedObject.WithLabelValues(state.backend).Set(float64(state.rejected))
		failing := 0.0
		if state.feed.Err != nil {
			failing = 1
		}
		m.failing.WithLabelValues(state.backend).Set(failing)
	}
}
