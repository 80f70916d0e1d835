package binding

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// newSynced makes the metric of how long writing the Works of a binding takes, or
// finds the one that another control plane of this process registered.
func newSynced(registry prometheus.Registerer) (*prometheus.HistogramVec, error) {
	synced := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "binding_sync_work_duration_seconds", Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		Help: "Duration in seconds to write the Works of a binding.",
	}, []string{"result"})
	err := registry.Register(synced)
	if err == nil {
		return synced, nil
	}
	var taken prometheus.AlreadyRegisteredError
	if errors.As(err, &taken) {
		if existing, ok := taken.ExistingCollector.(*prometheus.HistogramVec); ok {
			return existing, nil
		}
	}
	return nil, fmt.Errorf("registering a metric: %w", err)
}

// observeSync is deferred, and so is given where the failures will be.
func observeSync(synced *prometheus.HistogramVec, start time.Time, failures *[]error) {
	result := "success"
	if len(*failures) > 0 {
		result = "error"
	}
	synced.WithLabelValues(result).Observe(time.Since(start).Seconds())
}
