package reference

import (
	"context"
	"fmt"
	"slices"
	"strings"

	assembly "karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/programs/gates"
)

// registeredMetrics returns the metrics of all programs, and the names of the programs by the name
// of the metric.
func registeredMetrics() (metrics []assembly.Metric, owners map[string][]string, err error) {
	owners = map[string][]string{}
	add := func(program string, described []assembly.Metric) {
		for _, m := range described {
			if owners[m.Name] = append(owners[m.Name], program); len(owners[m.Name]) == 1 {
				metrics = append(metrics, m)
			}
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for _, component := range components.All(gates.New()) {
		described, err := component.RegisteredMetrics(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("metrics of %s: %w", component.Name, err)
		}
		add(component.Name, described)
	}
	slices.SortFunc(metrics, func(a, b assembly.Metric) int { return strings.Compare(a.Name, b.Name) })
	return metrics, owners, nil
}

func metricsPage() (*markdown, error) {
	metrics, owners, err := registeredMetrics()
	if err != nil {
		return nil, err
	}
	text := newMarkdown("Metrics", "This page lists the metrics that the programs register. "+
		"[Components](../components.md#health-metrics-profiles) describes the addresses at which the programs serve them.\n\n"+
		"The table does not contain the metrics of libraries: `go_*`, `process_*`, `rest_client_*`, `certwatcher_*` and, for programs with queues, `workqueue_*`, `controller_runtime_*` and `leader_election_*`. "+
		"The aggregated API servers "+strings.Join(apiServerNames(),
		" and ")+" also serve `karmada_build_info` and the metrics of the Kubernetes API server library.")
	var rows [][]string
	for _, m := range metrics {
		help := sentence(m.Help)
		if bounds := formatBuckets(m.Buckets); bounds != "" {
			help += " Buckets: " + bounds + "."
		}
		rows = append(rows, []string{code(m.Name), m.Kind, cell(strings.Join(m.Labels, ", ")), cell(help),
			cell(strings.Join(owners[m.Name], ", "))})
	}
	text.addTable([]string{"metric", "type", "labels", "meaning", "programs"}, rows)
	return text, nil
}

// apiServerNames returns the names of the components that serve an API behind the aggregation layer.
func apiServerNames() []string {
	var names []string
	for _, component := range components.Servers(components.All(gates.New())) {
		if len(component.Server.APIServices) > 0 {
			names = append(names, component.Name)
		}
	}
	return names
}

// formatBuckets returns the number of bounds, the lowest bound and the highest bound.
func formatBuckets(bounds []float64) string {
	if len(bounds) == 0 {
		return ""
	}
	return fmt.Sprintf("%d from %.4g to %.4g", len(bounds), bounds[0], bounds[len(bounds)-1])
}
