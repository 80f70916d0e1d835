package clusterstatus

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/loop"
)

// memberLabel is the metric label that contains the member's name.
const memberLabel = "member_cluster"

// clusterGauge defines a gauge with one value per cluster.
type clusterGauge struct {
	name, help string
	// value returns the gauge's value for a Cluster. ok is false if there is no value.
	value func(*clusterv1alpha1.Cluster) (value float64, ok bool)
}

func clusterGauges() []clusterGauge {
	allocatable := func(s *clusterv1alpha1.ResourceSummary) corev1.ResourceList { return s.Allocatable }
	allocated := func(s *clusterv1alpha1.ResourceSummary) corev1.ResourceList { return s.Allocated }
	return []clusterGauge{
		{"cluster_ready_state", "1 when the member is ready, else 0.", readyValue},
		{"cluster_node_number", "Number of nodes in the member.",
			nodeCount(func(s *clusterv1alpha1.NodeSummary) int32 { return s.TotalNum })},
		{"cluster_ready_node_number", "Number of ready nodes in the member.",
			nodeCount(func(s *clusterv1alpha1.NodeSummary) int32 { return s.ReadyNum })},
		{"cluster_memory_allocatable_bytes", "Allocatable memory of the member in bytes.", resourceAmount(allocatable, corev1.ResourceMemory)},
		{"cluster_cpu_allocatable_number", "Allocatable CPU of the member in cores.", resourceAmount(allocatable, corev1.ResourceCPU)},
		{"cluster_pod_allocatable_number", "Number of Pods that the nodes of the member take.", resourceAmount(allocatable, corev1.ResourcePods)},
		{"cluster_memory_allocated_bytes", "Memory requested by Pods that run in the member, in bytes.",
			resourceAmount(allocated, corev1.ResourceMemory)},
		{"cluster_cpu_allocated_number", "CPU requested by Pods that run in the member, in cores.",
			resourceAmount(allocated, corev1.ResourceCPU)},
		{"cluster_pod_allocated_number", "Number of Pods that run in the member.", resourceAmount(allocated, corev1.ResourcePods)},
	}
}

func readyValue(cluster *clusterv1alpha1.Cluster) (float64, bool) {
	if domain.IsReady(cluster) {
		return 1, true
	}
	return 0, true
}

func nodeCount(number func(*clusterv1alpha1.NodeSummary) int32) func(*clusterv1alpha1.Cluster) (float64, bool) {
	return func(cluster *clusterv1alpha1.Cluster) (float64, bool) {
		if cluster.Status.NodeSummary == nil {
			return 0, false
		}
		return float64(number(cluster.Status.NodeSummary)), true
	}
}

func resourceAmount(list func(*clusterv1alpha1.ResourceSummary) corev1.ResourceList,
	name corev1.ResourceName) func(*clusterv1alpha1.Cluster) (float64, bool) {
	return func(cluster *clusterv1alpha1.Cluster) (float64, bool) {
		if cluster.Status.ResourceSummary == nil {
			return 0, false
		}
		quantity := list(cluster.Status.ResourceSummary)[name]
		return quantity.AsApproximateFloat64(), true
	}
}

type clusterMetrics struct {
	definitions []clusterGauge
	gauges      []*prometheus.GaugeVec // one for each clusterGauge
	duration    *prometheus.HistogramVec
}

func newClusterMetrics(registry prometheus.Registerer) (*clusterMetrics, error) {
	m := &clusterMetrics{definitions: clusterGauges()}
	for _, definition := range m.definitions {
		gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: definition.name, Help: definition.help}, []string{memberLabel})
		if err := loop.RegisterMetric(registry, &gauge); err != nil {
			return nil, err
		}
		m.gauges = append(m.gauges, gauge)
	}
	m.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "cluster_sync_status_duration_seconds", Help: "Duration in seconds of one collection of the status of the member.",
	}, []string{memberLabel})
	return m, loop.RegisterMetric(registry, &m.duration)
}

// record sets a Cluster's metrics. A gauge without a current value keeps its last value.
func (c *clusterMetrics) record(cluster *clusterv1alpha1.Cluster, took time.Duration) {
	for i, definition := range c.definitions {
		if value, ok := definition.value(cluster); ok {
			c.gauges[i].WithLabelValues(cluster.Name).Set(value)
		}
	}
	c.duration.WithLabelValues(cluster.Name).Observe(took.Seconds())
}

func (c *clusterMetrics) deleteCluster(member string) {
	for _, gauge := range c.gauges {
		gauge.DeleteLabelValues(member)
	}
	c.duration.DeleteLabelValues(member)
}
