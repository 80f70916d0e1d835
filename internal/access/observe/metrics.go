package observe

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers a metric, or puts the one of that name that is there already
// in its place: one process may run several control planes.
func Register[C prometheus.Collector](registry prometheus.Registerer, metric *C) error {
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
