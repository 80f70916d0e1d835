package binding

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/access/observe"
)

// newSynced makes the metric of how long writing the Works of a binding takes, or
// finds the one that another control plane of this process registered.
func newSynced(registry prometheus.Registerer) (*prometheus.HistogramVec, error) {
	synced := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "binding_sync_work_duration_seconds", Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		Help: "Duration in seconds to write the Works of a binding.",
	}, []string{"result"})
	err := observe.Register(registry, &synced)
	return synced, err
}

// observeSync is deferred, and so is given where the failures will be.
func observeSync(synced *prometheus.HistogramVec, start time.Time, failures *[]error) {
	result := "success"
	if len(*failures) > 0 {
		result = "error"
	}
	synced.WithLabelValues(result).Observe(time.Since(start).Seconds())
}
