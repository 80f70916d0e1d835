package programs

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/gates"
)

// ledger is a registry that remembers what was registered: a metric with labels
// shows itself only once it has a value.
type ledger struct {
	*prometheus.Registry
	collectors []prometheus.Collector
}

func (l *ledger) Register(collector prometheus.Collector) error {
	err := l.Registry.Register(collector)
	if err == nil {
		l.collectors = append(l.collectors, collector)
	}
	return err
}

func (l *ledger) MustRegister(collectors ...prometheus.Collector) {
	for _, collector := range collectors {
		if err := l.Register(collector); err != nil {
			panic(err)
		}
	}
}

// registered are the facts of the metrics of a component, by name.
func registered(t *testing.T, component Component) map[string]fact {
	t.Helper()
	before, l := metrics.Registry, &ledger{Registry: prometheus.NewRegistry()}
	metrics.Registry = l
	t.Cleanup(func() { metrics.Registry = before })
	host := unconnected(t)
	if err := component.Add(host); err != nil {
		t.Fatalf("adding %s: %v", component.Name, err)
	}
	if err := command.RegisterBuildInfo(l); err != nil {
		t.Fatal(err)
	}
	for _, collector := range l.collectors {
		if err := show(collector); err != nil {
			t.Fatal(err)
		}
	}
	families, err := l.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]fact{}
	for _, family := range families {
		one, f := family.GetMetric()[0], fact{Kind: strings.ToLower(family.GetType().String())}
		for _, label := range one.GetLabel() {
			f.Labels = append(f.Labels, label.GetName())
		}
		for _, bucket := range one.GetHistogram().GetBucket() {
			f.Buckets = append(f.Buckets, bucket.GetUpperBound())
		}
		byName[family.GetName()] = f
		if family.GetHelp() == "" {
			t.Errorf("%s does not say what it measures", family.GetName())
		}
	}
	return byName
}

// unconnected is a host that never asks the control plane anything.
func unconnected(t *testing.T) *Host {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	settings := DefaultSettings(gates.New())
	options := managerOptions(scheme, HostOptions{Settings: &settings})
	options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
		mapper := meta.NewDefaultRESTMapper(scheme.PreferredVersionAllGroups())
		for kind := range scheme.AllKnownTypes() {
			mapper.Add(kind, meta.RESTScopeNamespace)
		}
		return mapper, nil
	}
	mgr, err := manager.New(&rest.Config{Host: "127.0.0.1:1"}, options)
	if err != nil {
		t.Fatal(err)
	}
	counted, err := member.NewMetrics(metrics.Registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := epoch.NewMetrics(metrics.Registry); err != nil {
		t.Fatal(err)
	}
	return &Host{
		Manager: mgr, Settings: settings, Rules: interpreter.Chain(), Renderings: report.NewRenderings(),
		Members: member.NewClusters(t.Context(), member.Options{Karmada: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Metrics: counted}),
		Reports: report.NewWorks(mgr.GetClient(), report.DefaultOptions()),
	}
}

var variableLabels = regexp.MustCompile(`variableLabels: \{([^}]*)\}`)

// show gives a metric with labels a value.
func show(collector prometheus.Collector) error {
	described := make(chan *prometheus.Desc, 1)
	collector.Describe(described)
	match := variableLabels.FindStringSubmatch((<-described).String())
	if match == nil || match[1] == "" {
		return nil
	}
	values := prometheus.Labels{}
	for label := range strings.SplitSeq(match[1], ",") {
		values[label] = "x"
	}
	var err error
	switch vector := collector.(type) {
	case *prometheus.CounterVec:
		_, err = vector.GetMetricWith(values)
	case *prometheus.GaugeVec:
		_, err = vector.GetMetricWith(values)
	case *prometheus.HistogramVec:
		_, err = vector.GetMetricWith(values)
	default:
		err = fmt.Errorf("nobody knows how to give a %T a value", collector)
	}
	return err
}

// fact is what is known of one metric.
type fact struct {
	Kind    string
	Labels  []string
	Buckets []float64
}

// row is a fact with the programs that must have it, or may if it is planned.
type row struct {
	fact
	planned  bool
	programs []string
}

// facts reads the table.
func facts(t *testing.T) map[string]row {
	t.Helper()
	content, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]row{}
	for line := range strings.SplitSeq(string(content), "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "|")
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		name, planned := strings.CutPrefix(columns[0], "? ")
		r := row{fact: fact{Kind: columns[1]}, planned: planned, programs: strings.Split(columns[4], ",")}
		if columns[2] != "" {
			r.Labels = strings.Split(columns[2], ",")
		}
		if r.Buckets, err = buckets(columns[3]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		known[name] = r
	}
	return known
}

var errNotBuckets = errors.New("these are no buckets")

func buckets(column string) ([]float64, error) {
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

func TestMetricsAreThoseThatDashboardsRead(t *testing.T) {
	known, components := facts(t), Components()
	for program, component := range map[string]Component{
		"manager":   components[slices.Index(Names(), ControllerManager)],
		"scheduler": components[slices.Index(Names(), Scheduler)],
		"agent":     AgentComponent(),
	} {
		t.Run(program, func(t *testing.T) {
			got := registered(t, component)
			for name, measured := range got {
				want, ok := known[name]
				if !ok || !slices.Contains(want.programs, program) {
					t.Errorf("%s is not in the table of metrics", name)
					continue
				}
				if diff := cmp.Diff(want.fact, measured); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			for name, want := range known {
				if _, ok := got[name]; !ok && !want.planned && slices.Contains(want.programs, program) {
					t.Errorf("%s is not measured", name)
				}
			}
		})
	}
}
