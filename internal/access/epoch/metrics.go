package epoch

import (
	"github.com/prometheus/client_golang/prometheus"

	domain "karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/loop"
)

// Metrics are the metrics of the epoch.
type Metrics struct{ unconfirmed prometheus.Gauge }

// NewMetrics registers the metrics, or returns the metrics that are already registered.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{unconfirmed: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "karmada_restore_unconfirmed", Help: "1 while the control plane is restored from a backup and no user has confirmed that, so that nothing is deleted in member clusters.",
	})}
	return m, loop.RegisterMetric(registry, &m.unconfirmed)
}

func (m *Metrics) setEpoch(e domain.Epoch) {
	if m == nil {
		return
	}
	value := 0.0
	if e.NeedsConfirmation() {
		value = 1
	}
	m.unconfirmed.Set(value)
}
