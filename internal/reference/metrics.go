package reference

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	assembly "karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/agent"
	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/programs/webhook"
	"karmada.io/karmada/internal/servers/estimator"
	"karmada.io/karmada/internal/servers/search"
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
	for _, component := range append(components.Hosted(components.All(gates.New())), agent.Default(gates.New()).Component()) {
		described, err := component.Metrics(ctx)
		if err != nil {
			return nil, nil, err
		}
		add(component.Name, described)
	}
	for program, collect := range map[string]func() ([]prometheus.Collector, error){assembly.Webhook: webhook.Metrics, assembly.SchedulerEstimator: estimator.Metrics, assembly.Search: search.Metrics} {
		collectors, err := collect()
		if err != nil {
			return nil, nil, err
		}
		described, err := assembly.DescribeMetrics(collectors...)
		if err != nil {
			return nil, nil, err
		}
		add(program, described)
	}
	slices.SortFunc(metrics, func(a, b assembly.Metric) int { return strings.Compare(a.Name, b.Name) })
	return metrics, owners, nil
}

func metricsPage() (*markdown, error) {
	metrics, owners, err := registeredMetrics()
	if err != nil {
		return nil, err
	}
	text := newMarkdown("Metrics", "The metrics that the programs register, without those of their libraries. "+
		"[Components](../components.md#health-metrics-profiles) has the addresses.\n\n"+
		"The libraries add `go_*`, `process_*`, `rest_client_*`, `certwatcher_*` and, for programs with queues, `workqueue_*`, `controller_runtime_*` and `leader_election_*`. "+
		"karmada-aggregated-apiserver and karmada-search have `karmada_build_info` and the metrics of the API server library of Kubernetes.")
	var rows [][]string
	for _, m := range metrics {
		help := sentence(m.Help)
		if bounds := formatBuckets(m.Buckets); bounds != "" {
			help += " Buckets: " + bounds + "."
		}
		rows = append(rows, []string{code(m.Name), m.Kind, cell(strings.Join(m.Labels, ", ")), cell(help), cell(strings.Join(owners[m.Name], ", "))})
	}
	text.addTable([]string{"metric", "type", "labels", "meaning", "programs"}, rows)
	return text, nil
}

// formatBuckets returns the number of bounds, the lowest bound and the highest bound.
func formatBuckets(bounds []float64) string {
	if len(bounds) == 0 {
		return ""
	}
	return fmt.Sprintf("%d from %.4g to %.4g", len(bounds), bounds[0], bounds[len(bounds)-1])
}
