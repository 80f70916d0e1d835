package binding

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/access/telemetry"
)

// newSyncDuration registers the metric of the time to write the Works of a binding, or returns
// the one that another control plane of this process registered.
func newSyncDuration(registry prometheus.Registerer) (*prometheus.HistogramVec, error) {
	syncDuration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "binding_sync_work_duration_seconds", Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		Help: "Duration in seconds to write the Works of a binding.",
	}, []string{"result"})
	err := telemetry.RegisterMetric(registry, &syncDuration)
	return syncDuration, err
}

// recordSyncDuration is deferred, so it gets a pointer to the failures.
func recordSyncDuration(syncDuration *prometheus.HistogramVec, start time.Time, failures *[]error) {
	result := "success"
	if len(*failures) > 0 {
		result = "error"
	}
	syncDuration.WithLabelValues(result).Observe(time.Since(start).Seconds())
}
