package binding

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/loop"
)

// newSyncDuration registers the metric for the time to write the Works of a binding. If another
// control plane in this process has registered the metric, it returns the registered one.
func newSyncDuration(registry prometheus.Registerer) (*prometheus.HistogramVec, error) {
	syncDuration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "binding_sync_work_duration_seconds", Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		Help: "Duration in seconds to write the Works of a binding.",
	}, []string{"result"})
	err := loop.RegisterMetric(registry, &syncDuration)
	return syncDuration, err
}

// recordSyncDuration records the time since start. It takes a pointer to the failures, because it
// is deferred before the failures are known.
func recordSyncDuration(syncDuration *prometheus.HistogramVec, start time.Time, failures *[]error) {
	result := "success"
	if len(*failures) > 0 {
		result = "error"
	}
	syncDuration.WithLabelValues(result).Observe(time.Since(start).Seconds())
}
