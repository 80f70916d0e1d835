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
	"karmada.io/karmada/internal/access/statuswriter"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/gates"
)

// recordingRegistry remembers the registered collectors, because a metric with labels is
// gathered only once it has a value.
type recordingRegistry struct {
	*prometheus.Registry
	collectors []prometheus.Collector
}

func (l *recordingRegistry) Register(collector prometheus.Collector) error {
	err := l.Registry.Register(collector)
	if err == nil {
		l.collectors = append(l.collectors, collector)
	}
	return err
}

func (l *recordingRegistry) MustRegister(collectors ...prometheus.Collector) {
	for _, collector := range collectors {
		if err := l.Register(collector); err != nil {
			panic(err)
		}
	}
}

// registeredMetrics returns the metrics of a component by name.
func registeredMetrics(t *testing.T, component Component) map[string]metricSpec {
	t.Helper()
	before, l := metrics.Registry, &recordingRegistry{Registry: prometheus.NewRegistry()}
	metrics.Registry = l
	t.Cleanup(func() { metrics.Registry = before })
	host := newOfflineHost(t)
	if err := component.Add(host); err != nil {
		t.Fatalf("adding %s: %v", component.Name, err)
	}
	if err := command.RegisterBuildInfo(l); err != nil {
		t.Fatal(err)
	}
	for _, collector := range l.collectors {
		if err := setExampleValue(collector); err != nil {
			t.Fatal(err)
		}
	}
	families, err := l.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]metricSpec{}
	for _, family := range families {
		one, f := family.GetMetric()[0], metricSpec{Kind: strings.ToLower(family.GetType().String())}
		for _, label := range one.GetLabel() {
			f.Labels = append(f.Labels, label.GetName())
		}
		for _, bucket := range one.GetHistogram().GetBucket() {
			f.Buckets = append(f.Buckets, bucket.GetUpperBound())
		}
		byName[family.GetName()] = f
		if family.GetHelp() == "" {
			t.Errorf("%s has no help", family.GetName())
		}
	}
	return byName
}

// newOfflineHost returns a host that sends no request to the control plane.
func newOfflineHost(t *testing.T) *Host {
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
	memberMetrics, err := member.NewMetrics(metrics.Registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := epoch.NewMetrics(metrics.Registry); err != nil {
		t.Fatal(err)
	}
	return &Host{
		Manager: mgr, Settings: settings, Interpreter: interpreter.New(), Renderings: statuswriter.NewRenderFailures(),
		Members:     member.NewClusters(t.Context(), member.Options{Karmada: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Metrics: memberMetrics}),
		WorkReports: statuswriter.NewWriter(mgr.GetClient(), statuswriter.DefaultOptions()),
	}
}

var variableLabels = regexp.MustCompile(`variableLabels: \{([^}]*)\}`)

// setExampleValue gives a metric with labels a value, so that it is gathered.
func setExampleValue(collector prometheus.Collector) error {
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
		err = fmt.Errorf("cannot set an example value of a %T", collector)
	}
	return err
}

// metricSpec describes one metric.
type metricSpec struct {
	Kind    string
	Labels  []string
	Buckets []float64
}

// metricRow is a metric with the programs that must have it, or may have it if it is planned.
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
	known, components := readMetricTable(t), Components()
	for program, component := range map[string]Component{
		"manager":   components[slices.Index(ComponentNames(), ControllerManager)],
		"scheduler": components[slices.Index(ComponentNames(), Scheduler)],
		"agent":     AgentComponent(),
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
