package command

import (
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// NewMetricsRegistry returns a registry for the metrics of one program. It has the metrics of the process
// and the version of the program.
func NewMetricsRegistry() (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry, RegisterBuildInfo(registry)
}

// MetricsHandler serves the metrics of a registry, and the metrics of the libraries that all
// programs use.
func MetricsHandler(registry *prometheus.Registry) http.Handler {
	gatherers := prometheus.Gatherers{registry, prometheus.GathererFunc(libraryMetrics(ctrlmetrics.Registry.Gather))}
	return promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{})
}

// libraryMetrics keeps only the metrics of client-go requests and of the certificate watcher. All
// other metrics in the registry of the process belong to other programs.
func libraryMetrics[Family interface{ GetName() string }](gather func() ([]Family, error)) func() ([]Family, error) {
	isOther := func(family Family) bool {
		name := family.GetName()
		return !strings.HasPrefix(name, "rest_client_") && !strings.HasPrefix(name, "certwatcher_")
	}
	return func() ([]Family, error) {
		families, err := gather()
		return slices.DeleteFunc(families, isOther), err
	}
}
