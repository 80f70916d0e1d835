package standalone

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// MetricsPath is the path of the metrics on a process's API server.
const MetricsPath = "/metrics"

// runtimePrefixes are the name prefixes of Go runtime and process metrics, which both registries have.
var runtimePrefixes = []string{"go_", "process_"}

// MetricsGatherer gathers the metrics of Kubernetes, and the metrics of Components that Kubernetes does
// not have.
//
// Kubernetes registers its metrics in legacyregistry, while controller-runtime and Karmada's
// components register theirs in another registry.
type MetricsGatherer struct{ Kubernetes, Components prometheus.Gatherer }

// Gather implements prometheus.Gatherer.
func (g MetricsGatherer) Gather() ([]*dto.MetricFamily, error) {
	merged, err := g.Kubernetes.Gather()
	components, componentsErr := g.Components.Gather()
	for _, family := range components {
		if !isRuntimeMetric(family.GetName()) {
			merged = MergeMetrics(merged, family)
		}
	}
	SortMetrics(merged)
	return merged, errors.Join(err, componentsErr)
}

func isRuntimeMetric(name string) bool {
	return slices.ContainsFunc(runtimePrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// MergeMetrics adds family to families. If families already contains a family with the same name and type,
// MergeMetrics adds the metrics to it. It ignores a family with the same name and another type.
func MergeMetrics(families []*dto.MetricFamily, added *dto.MetricFamily) []*dto.MetricFamily {
	at := slices.IndexFunc(families, func(family *dto.MetricFamily) bool { return family.GetName() == added.GetName() })
	switch {
	case at < 0:
		return append(families, added)
	case families[at].GetType() == added.GetType():
		families[at].Metric = append(families[at].Metric, added.Metric...)
	}
	return families
}

// SortMetrics sorts families by name.
func SortMetrics(families []*dto.MetricFamily) {
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
}

// ServeAllMetrics returns a handler that serves the metrics of this process at MetricsPath, and passes
// other requests to next.
func ServeAllMetrics(next http.Handler) http.Handler {
	all := promhttp.HandlerFor(MetricsGatherer{Kubernetes: legacyregistry.DefaultGatherer, Components: metrics.Registry},
		promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == MetricsPath && r.Method == http.MethodGet {
			all.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
