package loop

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// RegisterMetric registers a metric. If a metric with that name is already registered, it sets
// *metric to the registered one, because one process may run several control planes.
func RegisterMetric[C prometheus.Collector](registry prometheus.Registerer, metric *C) error {
	err := registry.Register(*metric)
	var taken prometheus.AlreadyRegisteredError
	if errors.As(err, &taken) {
		if existing, ok := taken.ExistingCollector.(C); ok {
			*metric = existing
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("registering a metric: %w", err)
	}
	return nil
}
