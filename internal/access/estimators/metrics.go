package estimators

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/loop"
)

// PoolMetrics show which estimators fail. A nil *PoolMetrics counts nothing.
type PoolMetrics struct {
	requests *prometheus.CounterVec
	failing  *prometheus.GaugeVec
}

// NewPoolMetrics registers the metrics, or returns the metrics that another component in this process
// has registered.
func NewPoolMetrics(registry prometheus.Registerer) (*PoolMetrics, error) {
	m := &PoolMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "karmada_estimator_client_requests_total",
			Help: "Number of requests to the estimator of a member, by their result (success or error).",
		}, []string{"member_cluster", "result"}),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "karmada_estimator_client_failing",
			Help: "1 while the estimator of a member fails or does not respond, so that its estimates are not used, otherwise 0. Absent for members without an estimator.",
		}, []string{"member_cluster"}),
	}
	return m, errors.Join(loop.RegisterMetric(registry, &m.requests), loop.RegisterMetric(registry, &m.failing))
}

func (m *PoolMetrics) countRequest(cluster string, err error) {
	if m == nil {
		return
	}
	result := "success"
	if err != nil {
		result = "error"
	}
	m.requests.WithLabelValues(cluster, result).Inc()
}

func (m *PoolMetrics) setFailing(cluster string, isFailing bool) {
	if m == nil {
		return
	}
	value := 0.0
	if isFailing {
		value = 1
	}
	m.failing.WithLabelValues(cluster).Set(value)
}

// forget removes the metrics of a cluster that is deleted or has no estimator.
func (m *PoolMetrics) forget(cluster string) {
	if m == nil {
		return
	}
	m.failing.DeleteLabelValues(cluster)
	m.requests.DeletePartialMatch(prometheus.Labels{"member_cluster": cluster})
}
