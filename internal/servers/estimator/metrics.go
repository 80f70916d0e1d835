package estimator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	grpcmetadata "google.golang.org/grpc/metadata"
	"k8s.io/klog/v2"
)

// slowRequest is the time above which a request is logged with its steps.
const slowRequest = 100 * time.Millisecond

// objectKey is the key of the gRPC metadata that names the object of a request.
const objectKey = "object"

// metrics are the metrics of a server. Their names and labels are those of existing dashboards.
type metrics struct {
	requests *prometheus.CounterVec
	steps    *prometheus.HistogramVec
	points   *prometheus.HistogramVec
	plugins  *prometheus.HistogramVec
}

// newMetrics returns the metrics and registers them, if a registerer is given.
func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "karmada_scheduler_estimator_estimating_request_total",
			Help: "Requests by method and result.",
		}, []string{"result", "type"}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "karmada_scheduler_estimator_estimating_algorithm_duration_seconds",
			Help:    "Duration of one step of a request in seconds; the step Total is the whole request.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 10),
		}, []string{"result", "type", "step"}),
		points: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "karmada_scheduler_estimator_estimating_plugin_extension_point_duration_seconds",
			Help:    "Duration of all plugins of a request in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 12),
		}, []string{"estimating_plugin_extension_point"}),
		plugins: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "karmada_scheduler_estimator_estimating_plugin_execution_duration_seconds",
			Help:    "Duration of one plugin of a request in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.00001, 1.5, 20),
		}, []string{"estimating_plugin", "estimating_plugin_extension_point"}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, collector := range m.collectors() {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering a metric: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.steps, m.points, m.plugins}
}

// Metrics returns the metrics of a server, in order to describe them.
func Metrics() ([]prometheus.Collector, error) {
	m, err := newMetrics(nil)
	if err != nil {
		return nil, err
	}
	return m.collectors(), nil
}

// trace measures the steps of one request.
type trace struct {
	metrics     *metrics
	method      string
	started     time.Time
	stepStarted time.Time
	steps       []string
}

func (m *metrics) startTrace(method string) *trace {
	now := time.Now()
	return &trace{metrics: m, method: method, started: now, stepStarted: now}
}

// endStep ends a step, which began at the end of the previous step.
func (t *trace) endStep(step string, err error) {
	now := time.Now()
	took := now.Sub(t.stepStarted)
	t.stepStarted = now
	t.steps = append(t.steps, step+"="+took.Round(10*time.Microsecond).String())
	t.metrics.steps.WithLabelValues(resultOf(err), t.method, step).Observe(took.Seconds())
}

// finish ends the request. It logs a request that took long.
func (t *trace) finish(ctx context.Context, err error) {
	took := time.Since(t.started)
	t.metrics.steps.WithLabelValues(resultOf(err), t.method, "Total").Observe(took.Seconds())
	t.metrics.requests.WithLabelValues(resultOf(err), t.method).Inc()
	if took > slowRequest {
		object := grpcmetadata.ValueFromIncomingContext(ctx, objectKey)
		klog.FromContext(ctx).Info("A request took long", "method", t.method, "object", strings.Join(object, "; "), "took", took, "steps",
			t.steps)
	}
}

func resultOf(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}
