package webhook

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"karmada.io/karmada/internal/programs/command"
)

// metrics are what a webhook counts, in a registry of its own. The names are those
// by which dashboards know the webhooks of controllers.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
}

func newMetrics() (*metrics, error) {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_runtime_webhook_requests_total",
			Help: "Questions answered, by path and HTTP status code; a refusal is an answer with code 200.",
		}, []string{"webhook", "code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "controller_runtime_webhook_latency_seconds",
			Help:    "Seconds that an answer takes, by path.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
		}, []string{"webhook"}),
	}
	m.registry.MustRegister(m.requests, m.latency,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m, command.RegisterBuildInfo(m.registry)
}

func (m *metrics) handler() http.Handler {
	measured := prometheus.Gatherers{m.registry, prometheus.GathererFunc(libraries(ctrlmetrics.Registry.Gather))}
	return promhttp.HandlerFor(measured, promhttp.HandlerOpts{})
}

// libraries is what libraries measure in the registry of the process: requests to
// the control plane, and the certificate that is read anew. What else may be there
// belongs to others.
func libraries[Family interface{ GetName() string }](gather func() ([]Family, error)) func() ([]Family, error) {
	others := func(family Family) bool {
		name := family.GetName()
		return !strings.HasPrefix(name, "rest_client_") && !strings.HasPrefix(name, "certwatcher_")
	}
	return func() ([]Family, error) {
		families, err := gather()
		return slices.DeleteFunc(families, others), err
	}
}

// observe counts the questions that have a path of their own. Others are not
// counted: whoever asks could make up as many as he likes.
func (m *metrics) observe(questions http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, seen := time.Now(), &statusWriter{ResponseWriter: w, code: http.StatusOK}
		inner := r.WithContext(r.Context())
		questions.ServeHTTP(seen, inner)
		_, path, known := strings.Cut(inner.Pattern, " ")
		if !known {
			return
		}
		m.requests.WithLabelValues(path, strconv.Itoa(seen.code)).Inc()
		m.latency.WithLabelValues(path).Observe(time.Since(began).Seconds())
	})
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}
