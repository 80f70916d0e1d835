package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/programs/command"
)

// metrics contains the metrics of the webhook in a separate registry. The metrics have the names
// of the webhook metrics of controller-runtime, so that existing dashboards work.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
}

func newMetrics() (*metrics, error) {
	registry, err := command.NewMetricsRegistry()
	if err != nil {
		return nil, err
	}
	m := &metrics{
		registry: registry,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_runtime_webhook_requests_total",
			Help: "Admission and conversion requests by path and HTTP status code; a denied request has code 200.",
		}, []string{"webhook", "code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "controller_runtime_webhook_latency_seconds",
			Help:    "Latency of admission and conversion requests in seconds, by path.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
		}, []string{"webhook"}),
	}
	m.registry.MustRegister(m.requests, m.latency)
	return m, nil
}

// newCollectors returns the metrics of the program, without those of its libraries.
func newCollectors() ([]prometheus.Collector, error) {
	m, err := newMetrics()
	if err != nil {
		return nil, err
	}
	return []prometheus.Collector{m.requests, m.latency}, nil
}

// observe measures requests with a registered path. It does not measure other requests, because a
// client could create an unlimited number of label values.
func (m *metrics) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, recorder := time.Now(), &statusWriter{ResponseWriter: w, code: http.StatusOK}
		inner := r.WithContext(r.Context())
		next.ServeHTTP(recorder, inner)
		_, path, known := strings.Cut(inner.Pattern, " ")
		if !known {
			return
		}
		m.requests.WithLabelValues(path, strconv.Itoa(recorder.code)).Inc()
		m.latency.WithLabelValues(path).Observe(time.Since(start).Seconds())
	})
}

// statusWriter records the status code of a response.
type statusWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (s *statusWriter) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}
