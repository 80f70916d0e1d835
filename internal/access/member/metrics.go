package member

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/access/observe"
	domain "karmada.io/karmada/internal/domain/cluster"
)

// poolName is the name of the pool of open members in metrics.
const poolName = "member-clients"

// Metrics count how often an open member was at hand, and how often one had to be
// opened or was closed. The nil Metrics count nothing.
type Metrics struct {
	got, put *prometheus.CounterVec
	// exceeded counts the bounds that members hit.
	exceeded *prometheus.CounterVec
	expires  *prometheus.GaugeVec
	proofs   *prometheus.CounterVec
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
	m.exceeded = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "karmada_member_bound_exceeded_total",
		Help: "Number of answers and events of a member that exceeded a bound of the control plane, by the bound.",
	}, []string{"member_cluster", "bound"})
	m.proofs = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cluster_identity_checks_total",
		Help: "Number of times that a member was asked which cluster it is, by whether it was the one that was registered (matched or mismatched).",
	}, []string{"member_cluster", "result"})
	return m, errors.Join(
		observe.Register(registry, &m.exceeded), observe.Register(registry, &m.proofs),
		observe.Register(registry, &m.got), observe.Register(registry, &m.put), observe.Register(registry, &m.expires))
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

// identified counts an answer of a member to which cluster it is.
func (m *Metrics) identified(member string, matched bool) {
	switch {
	case m == nil:
	case matched:
		m.proofs.WithLabelValues(member, "matched").Inc()
	default:
		m.proofs.WithLabelValues(member, "mismatched").Inc()
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

// bounded counts a bound that a member hit.
func (m *Metrics) bounded(member string, bound bounds.Bound) {
	if m != nil {
		m.exceeded.WithLabelValues(member, string(bound)).Inc()
	}
}

// unbounded drops the counts of a member that is not used any more.
func (m *Metrics) unbounded(member string) {
	if m != nil {
		m.exceeded.DeletePartialMatch(prometheus.Labels{"member_cluster": member})
		m.proofs.DeletePartialMatch(prometheus.Labels{"member_cluster": member})
	}
}
