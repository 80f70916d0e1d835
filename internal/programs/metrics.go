package programs

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/gates"
)

// Metric describes a metric of a program.
type Metric struct {
	Name, Help string
	// Kind is the type of the metric: counter, gauge or histogram.
	Kind   string
	Labels []string
	// Buckets are the upper bounds of the buckets of a histogram.
	Buckets []float64
}

// RegisteredMetrics describes the metrics that the component registers, sorted by name, without the
// metrics of libraries. It returns nil if the component has only metrics of libraries. No other
// component may start at the same time; see HostedMetrics.
func (c Component) RegisteredMetrics(ctx context.Context) ([]Metric, error) {
	switch {
	case c.Metrics != nil:
		return c.Metrics(ctx)
	case c.Add != nil:
		return c.HostedMetrics(ctx, HostOptions{Gates: gates.New()})
	}
	return nil, nil
}

// CollectedMetrics returns a function for the field Metrics of a component that registers the
// collectors which collect returns.
func CollectedMetrics(collect func() ([]prometheus.Collector, error)) func(context.Context) ([]Metric, error) {
	return func(context.Context) ([]Metric, error) {
		collectors, err := collect()
		if err != nil {
			return nil, err
		}
		return DescribeMetrics(collectors...)
	}
}

// HostedMetrics describes the metrics that Add registers. To record them, it registers the component
// with a host that sends no request, and temporarily replaces the registry of the process. Therefore no
// other component may start at the same time.
func (c Component) HostedMetrics(ctx context.Context, o HostOptions) ([]Metric, error) {
	before, recording := metrics.Registry, &recordingRegistry{Registry: prometheus.NewRegistry()}
	metrics.Registry = recording
	defer func() { metrics.Registry = before }()
	host, err := newOfflineHost(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := c.Add(host); err != nil {
		return nil, fmt.Errorf("adding %s: %w", c.Name, err)
	}
	if err := command.RegisterBuildInfo(recording); err != nil {
		return nil, err
	}
	return DescribeMetrics(recording.collectors...)
}

// recordingRegistry records the registered collectors, because a registry gathers a metric with
// labels only if the metric has a value.
type recordingRegistry struct {
	*prometheus.Registry
	collectors []prometheus.Collector
}

func (r *recordingRegistry) Register(collector prometheus.Collector) error {
	err := r.Registry.Register(collector)
	if err == nil {
		r.collectors = append(r.collectors, collector)
	}
	return err // callers compare this error
}

func (r *recordingRegistry) MustRegister(collectors ...prometheus.Collector) {
	for _, collector := range collectors {
		if err := r.Register(collector); err != nil {
			panic(err)
		}
	}
}

// newOfflineHost returns a host that sends no request to the control plane.
func newOfflineHost(ctx context.Context, o HostOptions) (*Host, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	options := managerOptions(scheme, o)
	options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
		mapper := meta.NewDefaultRESTMapper(scheme.PreferredVersionAllGroups())
		for kind := range scheme.AllKnownTypes() {
			mapper.Add(kind, meta.RESTScopeNamespace)
		}
		return mapper, nil
	}
	mgr, err := manager.New(&rest.Config{Host: "127.0.0.1:1"}, options)
	if err != nil {
		return nil, fmt.Errorf("making a manager: %w", err)
	}
	memberMetrics, err := member.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}
	epochMetrics, err := epoch.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}
	watch := epoch.New(epoch.Options{Reader: mgr.GetAPIReader(), Metrics: epochMetrics}) // is not started
	reports := loop.NewStatusWriter(mgr.GetClient(), mgr.GetAPIReader(), loop.DefaultStatusWriterOptions())
	deletions, err := newDeletionGuard(mgr, reports, watch, o)
	if err != nil {
		return nil, err
	}
	return &Host{
		Manager: mgr, Gates: o.Gates, Interpreter: interpreter.New(),
		Members:     member.NewClusters(ctx, member.Options{Karmada: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Metrics: memberMetrics}),
		WorkReports: reports, Epoch: watch, Guard: deletions,
	}, nil
}

// DescribeMetrics describes metrics, sorted by name. It sets an example value of each metric with
// labels.
func DescribeMetrics(collectors ...prometheus.Collector) ([]Metric, error) {
	registry := prometheus.NewPedanticRegistry()
	for _, collector := range collectors {
		if err := setExampleValue(collector); err != nil {
			return nil, err
		}
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("registering a metric: %w", err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("gathering metrics: %w", err)
	}
	described := make([]Metric, 0, len(families))
	for _, family := range families {
		one, m := family.GetMetric()[0], Metric{Name: family.GetName(), Help: family.GetHelp(), Kind: strings.ToLower(family.GetType().String())}
		for _, label := range one.GetLabel() {
			m.Labels = append(m.Labels, label.GetName())
		}
		for _, bucket := range one.GetHistogram().GetBucket() {
			m.Buckets = append(m.Buckets, bucket.GetUpperBound())
		}
		described = append(described, m)
	}
	slices.SortFunc(described, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return described, nil
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
