package standalone

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestGathererHasMetricsOfBothRegistries(t *testing.T) {
	kubernetes, components := prometheus.NewRegistry(), prometheus.NewRegistry()
	queues := func(registry *prometheus.Registry, help string, labels ...string) *prometheus.GaugeVec {
		depth := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_depth", Help: help}, labels)
		registry.MustRegister(depth)
		return depth
	}
	gauge := func(name string, value float64) prometheus.Collector {
		metric := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: name})
		metric.Set(value)
		return metric
	}
	queues(kubernetes, "of Kubernetes", "name").WithLabelValues("job").Set(1)
	queues(components, "of controller-runtime", "name", "controller").WithLabelValues("work", "work").Set(2)
	kubernetes.MustRegister(gauge("go_goroutines", 3), gauge("apiserver_requests", 4))
	components.MustRegister(gauge("go_goroutines", 5), gauge("policy_preemption", 6),
		prometheus.NewCounter(prometheus.CounterOpts{Name: "apiserver_requests", Help: "has another type"}))

	want := `
# HELP apiserver_requests apiserver_requests
# TYPE apiserver_requests gauge
apiserver_requests 4
# HELP go_goroutines go_goroutines
# TYPE go_goroutines gauge
go_goroutines 3
# HELP policy_preemption policy_preemption
# TYPE policy_preemption gauge
policy_preemption 6
# HELP workqueue_depth of Kubernetes
# TYPE workqueue_depth gauge
workqueue_depth{name="job"} 1
workqueue_depth{controller="work",name="work"} 2
`
	if err := testutil.GatherAndCompare(MetricsGatherer{Kubernetes: kubernetes, Components: components}, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
