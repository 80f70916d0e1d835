package programs_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/agent"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/programs/scheduling"
)

// registeredMetrics returns the metrics of a component by name.
func registeredMetrics(t *testing.T, component programs.Component) map[string]metricSpec {
	t.Helper()
	described, err := component.RegisteredMetrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]metricSpec{}
	for _, m := range described {
		byName[m.Name] = metricSpec{Kind: m.Kind, Labels: m.Labels, Buckets: m.Buckets}
		if m.Help == "" {
			t.Errorf("%s has no help", m.Name)
		}
	}
	return byName
}

// metricSpec describes one metric.
type metricSpec struct {
	Kind    string
	Labels  []string
	Buckets []float64
}

// metricRow is a metric, with the programs that must have the metric. If planned is true, these
// programs need not have the metric yet.
type metricRow struct {
	metricSpec
	planned  bool
	programs []string
}

// readMetricTable reads testdata/metrics.txt.
func readMetricTable(t *testing.T) map[string]metricRow {
	t.Helper()
	content, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]metricRow{}
	for line := range strings.SplitSeq(string(content), "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "|")
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		name, planned := strings.CutPrefix(columns[0], "? ")
		r := metricRow{metricSpec: metricSpec{Kind: columns[1]}, planned: planned, programs: strings.Split(columns[4], ",")}
		if columns[2] != "" {
			r.Labels = strings.Split(columns[2], ",")
		}
		if r.Buckets, err = parseBuckets(columns[3]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		known[name] = r
	}
	return known
}

var errNotBuckets = errors.New("not a list of buckets")

func parseBuckets(column string) ([]float64, error) {
	if column == "" {
		return nil, nil
	}
	if column == "default" {
		return prometheus.DefBuckets, nil
	}
	inner, ok := strings.CutPrefix(strings.TrimSuffix(column, ")"), "exp(")
	numbers := strings.Split(inner, ",")
	if !ok || len(numbers) != 3 {
		return nil, fmt.Errorf("%q: %w", column, errNotBuckets)
	}
	first, err := strconv.ParseFloat(numbers[0], 64)
	factor, err2 := strconv.ParseFloat(numbers[1], 64)
	count, err3 := strconv.Atoi(numbers[2])
	return prometheus.ExponentialBuckets(first, factor, count), errors.Join(err, err2, err3)
}

func TestMetricsMatchUpstream(t *testing.T) {
	known := readMetricTable(t)
	for program, component := range map[string]programs.Component{
		"manager": controllermanager.New(gates.New()), "scheduler": scheduling.New(gates.New()), "agent": agent.New(gates.New()), "estimator": scheduling.NewEstimator(gates.New()),
	} {
		t.Run(program, func(t *testing.T) {
			got := registeredMetrics(t, component)
			for name, measured := range got {
				want, ok := known[name]
				if !ok || !slices.Contains(want.programs, program) {
					t.Errorf("%s is not in the table of metrics", name)
					continue
				}
				if diff := cmp.Diff(want.metricSpec, measured); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			for name, want := range known {
				if _, ok := got[name]; !ok && !want.planned && slices.Contains(want.programs, program) {
					t.Errorf("%s is not registered", name)
				}
			}
		})
	}
}
