package multicall

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/version"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/standalone"
)

// runComponent runs a program of Karmada.
func runComponent(program command.Program) int {
	metrics.Registry = &componentRegistry{RegistererGatherer: metrics.Registry, linked: legacyregistry.DefaultGatherer}
	return command.Main(program)
}

// requestMetric and queueMetricPrefix name the metrics of client-go that programs of Karmada and
// programs of Kubernetes have.
const (
	requestMetric     = "rest_client_requests_total"
	queueMetricPrefix = "workqueue_"
)

// componentRegistry is the registry of a Karmada program. client-go accepts only one receiver of its metrics
// in a process, and the Kubernetes packages are initialized first, so metrics of requests and queues are in
// the Kubernetes registry. componentRegistry adds these metrics, as if the Kubernetes packages were not
// linked.
type componentRegistry struct {
	metrics.RegistererGatherer
	linked prometheus.Gatherer
}

// Gather implements prometheus.Gatherer.
func (c *componentRegistry) Gather() ([]*dto.MetricFamily, error) {
	own, err := c.RegistererGatherer.Gather()
	linked, linkedErr := c.linked.Gather()
	merged := own
	for _, family := range linked {
		name := family.GetName()
		if name != requestMetric && !strings.HasPrefix(name, queueMetricPrefix) {
			continue
		}
		if strings.HasPrefix(name, queueMetricPrefix) {
			addQueueLabels(family)
		}
		merged = standalone.MergeMetrics(merged, family)
	}
	standalone.SortMetrics(merged)
	return merged, errors.Join(err, linkedErr)
}

// addQueueLabels adds the labels that queues have in a program of Karmada.
func addQueueLabels(family *dto.MetricFamily) {
	for _, metric := range family.Metric {
		labels := map[string]string{}
		for _, label := range metric.Label {
			labels[label.GetName()] = label.GetValue()
		}
		metric.Label = []*dto.LabelPair{pair("controller", labels["name"]), pair("name", labels["name"])}
		if family.GetName() == queueMetricPrefix+"depth" {
			metric.Label = append(metric.Label, pair("priority", ""))
		}
	}
}

func pair(name, value string) *dto.LabelPair {
	return &dto.LabelPair{Name: proto.String(name), Value: proto.String(value)}
}

// leaderElectionPrefix is the prefix of metrics that controller-runtime receives in this binary, and
// that the programs of Kubernetes have too.
const leaderElectionPrefix = "leader_election_"

// leaderElectionCollector adds leader election metrics to a Kubernetes program's metrics.
type leaderElectionCollector struct{ from prometheus.Gatherer }

// Describe implements prometheus.Collector. It describes nothing, because the metrics are defined by
// another package.
func (leaderElectionCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (l leaderElectionCollector) Collect(to chan<- prometheus.Metric) {
	families, err := l.from.Gather()
	if err != nil {
		to <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		return
	}
	for _, family := range families {
		if family.GetType() != dto.MetricType_GAUGE || !strings.HasPrefix(family.GetName(), leaderElectionPrefix) {
			continue
		}
		for _, metric := range family.Metric {
			labels := prometheus.Labels{}
			for _, label := range metric.Label {
				labels[label.GetName()] = label.GetValue()
			}
			desc := prometheus.NewDesc(family.GetName(), family.GetHelp(), nil, labels)
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, metric.GetGauge().GetValue())
		}
	}
}

// registerKubernetesMetrics registers the metrics that the main packages of Kubernetes register when
// they are linked.
func registerKubernetesMetrics() {
	legacyregistry.RawMustRegister(leaderElectionCollector{metrics.Registry})
	info := version.Get()
	labels := prometheus.Labels{
		"major": info.Major, "minor": info.Minor, "git_version": info.GitVersion, "git_commit": info.GitCommit,
		"git_tree_state": info.GitTreeState, "build_date": info.BuildDate, "go_version": info.GoVersion,
		"compiler": info.Compiler, "platform": info.Platform,
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kubernetes_build_info", Help: "Version of Kubernetes and of its build. The value is always 1.", ConstLabels: labels,
	})
	build.Set(1)
	legacyregistry.RawMustRegister(build)
}
