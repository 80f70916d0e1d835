package member

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/access/member/bounds"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/loop"
)

// poolName is the value of the pool label in the metrics of open members.
const poolName = "member-clients"

// Metrics counts how often an open member was reused, opened or closed. A nil *Metrics counts
// nothing.
type Metrics struct {
	poolGets, poolPuts *prometheus.CounterVec
	// exceededBounds counts how often members exceeded limits.
	exceededBounds   *prometheus.CounterVec
	credentialExpiry *prometheus.GaugeVec
	identityChecks   *prometheus.CounterVec
}

// NewMetrics registers the metrics, or returns the metrics that another control plane in this
// process has registered.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		poolGets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pool_get_operation_total", Help: "Number of objects taken from a pool.",
		}, []string{"name", "from"}),
		poolPuts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pool_put_operation_total", Help: "Number of objects given back to a pool.",
		}, []string{"name", "to"}),
	}
	m.credentialExpiry = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "cluster_credentials_expiration_timestamp_seconds",
		Help: "Unix time at which the first of token and CA certificates of the member ends. Absent when none does.",
	}, []string{"member_cluster"})
	m.exceededBounds = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "karmada_member_bound_exceeded_total",
		Help: "Number of responses and events of a member that exceeded a bound of the control plane, by the bound.",
	}, []string{"member_cluster", "bound"})
	m.identityChecks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cluster_identity_checks_total",
		Help: "Number of identity checks of a member, by whether it is the registered cluster (matched or mismatched).",
	}, []string{"member_cluster", "result"})
	return m, errors.Join(
		loop.RegisterMetric(registry, &m.exceededBounds), loop.RegisterMetric(registry, &m.identityChecks),
		loop.RegisterMetric(registry, &m.poolGets), loop.RegisterMetric(registry, &m.poolPuts),
		loop.RegisterMetric(registry, &m.credentialExpiry))
}

// setCredentialExpiry sets the time at which the credentials of a member expire.
func (m *Metrics) setCredentialExpiry(member string, validity domain.Validity) {
	switch {
	case m == nil:
	case validity.Until.IsZero():
		m.credentialExpiry.DeleteLabelValues(member)
	default:
		m.credentialExpiry.WithLabelValues(member).Set(float64(validity.Until.Unix()))
	}
}

// countIdentityCheck counts an identity check of a member.
func (m *Metrics) countIdentityCheck(member string, matched bool) {
	switch {
	case m == nil:
	case matched:
		m.identityChecks.WithLabelValues(member, "matched").Inc()
	default:
		m.identityChecks.WithLabelValues(member, "mismatched").Inc()
	}
}

func (m *Metrics) countReused() {
	if m != nil {
		m.poolGets.WithLabelValues(poolName, "pool").Inc()
	}
}

func (m *Metrics) countOpened() {
	if m != nil {
		m.poolGets.WithLabelValues(poolName, "new").Inc()
	}
}

// countClosed counts a member that was closed. The metric of the pool counts every closed member as
// destroyed, because members are shared and never returned to the pool.
func (m *Metrics) countClosed() {
	if m != nil {
		m.poolPuts.WithLabelValues(poolName, "destroyed").Inc()
	}
}

// countExceededBound counts a bound that a member exceeded.
func (m *Metrics) countExceededBound(member string, bound bounds.Bound) {
	if m != nil {
		m.exceededBounds.WithLabelValues(member, string(bound)).Inc()
	}
}

// deleteMember deletes the metrics of a member that is closed.
func (m *Metrics) deleteMember(member string) {
	if m != nil {
		m.exceededBounds.DeletePartialMatch(prometheus.Labels{"member_cluster": member})
		m.identityChecks.DeletePartialMatch(prometheus.Labels{"member_cluster": member})
	}
}
