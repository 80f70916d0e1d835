package member

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/access/observe"
	domain "karmada.io/karmada/internal/domain/cluster"
)

// poolName is the name of the pool of open members in metrics.
const poolName = "member-clients"

// Metrics count how often an open member was at hand, and how often one had to be
// opened or was closed. The nil Metrics count nothing.
type Metrics struct {
	got, put *prometheus.CounterVec
	expires  *prometheus.GaugeVec
}

// NewMetrics makes the metrics, or finds those that another control plane of this
// process registered.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		got: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pool_get_operation_total", Help: "Number of objects taken from a pool.",
		}, []string{"name", "from"}),
		put: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pool_put_operation_total", Help: "Number of objects given back to a pool.",
		}, []string{"name", "to"}),
	}
	m.expires = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "cluster_credentials_expiration_timestamp_seconds",
		Help: "Unix time at which the first of token and CA certificates of the member ends. Absent when none does.",
	}, []string{"member_cluster"})
	return m, errors.Join(observe.Register(registry, &m.got), observe.Register(registry, &m.put), observe.Register(registry, &m.expires))
}

// valid shows until when the credentials of a member are good.
func (m *Metrics) valid(member string, of domain.Validity) {
	switch {
	case m == nil:
	case of.Until.IsZero():
		m.expires.DeleteLabelValues(member)
	default:
		m.expires.WithLabelValues(member).Set(float64(of.Until.Unix()))
	}
}

func (m *Metrics) reused() {
	if m != nil {
		m.got.WithLabelValues(poolName, "pool").Inc()
	}
}

func (m *Metrics) opened() {
	if m != nil {
		m.got.WithLabelValues(poolName, "new").Inc()
	}
}

// closed counts a member that is used no more. Members are shared and not lent, so
// none goes back into the pool.
func (m *Metrics) closed() {
	if m != nil {
		m.put.WithLabelValues(poolName, "destroyed").Inc()
	}
}
