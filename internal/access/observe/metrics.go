package observe

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Registered registers a metric, or returns the one of that name that is there
// already: one process may run several control planes.
func Registered[C prometheus.Collector](registry prometheus.Registerer, metric C) (C, error) {
	err := registry.Register(metric)
	if err == nil {
		return metric, nil
	}
	var taken prometheus.AlreadyRegisteredError
	if errors.As(err, &taken) {
		if existing, ok := taken.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	return metric, fmt.Errorf("registering a metric: %w", err)
}
