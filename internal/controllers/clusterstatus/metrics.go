package clusterstatus

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/observe"
	domain "karmada.io/karmada/internal/domain/cluster"
)

// memberLabel is the label with the name of the member.
const memberLabel = "member_cluster"

// figure is one number that is known of a member.
type figure struct {
	name, help string
	// of is the number that a Cluster tells; ok is false when it tells none.
	of func(*clusterv1alpha1.Cluster) (value float64, ok bool)
}

func figures() []figure {
	allocatable := func(s *clusterv1alpha1.ResourceSummary) corev1.ResourceList { return s.Allocatable }
	allocated := func(s *clusterv1alpha1.ResourceSummary) corev1.ResourceList { return s.Allocated }
	return []figure{
		{"cluster_ready_state", "1 when the member is ready, else 0.", readiness},
		{"cluster_node_number", "Number of nodes in the member.",
			nodes(func(s *clusterv1alpha1.NodeSummary) int32 { return s.TotalNum })},
		{"cluster_ready_node_number", "Number of ready nodes in the member.",
			nodes(func(s *clusterv1alpha1.NodeSummary) int32 { return s.ReadyNum })},
		{"cluster_memory_allocatable_bytes", "Allocatable memory of the member in bytes.", amount(allocatable, corev1.ResourceMemory)},
		{"cluster_cpu_allocatable_number", "Allocatable CPU of the member in cores.", amount(allocatable, corev1.ResourceCPU)},
		{"cluster_pod_allocatable_number", "Number of Pods that the nodes of the member take.", amount(allocatable, corev1.ResourcePods)},
		{"cluster_memory_allocated_bytes", "Memory requested by Pods that run in the member, in bytes.", amount(allocated, corev1.ResourceMemory)},
		{"cluster_cpu_allocated_number", "CPU requested by Pods that run in the member, in cores.", amount(allocated, corev1.ResourceCPU)},
		{"cluster_pod_allocated_number", "Number of Pods that run in the member.", amount(allocated, corev1.ResourcePods)},
	}
}

func readiness(cluster *clusterv1alpha1.Cluster) (float64, bool) {
	if domain.Ready(cluster) {
		return 1, true
	}
	return 0, true
}

func nodes(number func(*clusterv1alpha1.NodeSummary) int32) func(*clusterv1alpha1.Cluster) (float64, bool) {
	return func(cluster *clusterv1alpha1.Cluster) (float64, bool) {
		if cluster.Status.NodeSummary == nil {
			return 0, false
		}
		return float64(number(cluster.Status.NodeSummary)), true
	}
}

func amount(list func(*clusterv1alpha1.ResourceSummary) corev1.ResourceList, name corev1.ResourceName) func(*clusterv1alpha1.Cluster) (float64, bool) {
	return func(cluster *clusterv1alpha1.Cluster) (float64, bool) {
		if cluster.Status.ResourceSummary == nil {
			return 0, false
		}
		quantity := list(cluster.Status.ResourceSummary)[name]
		return quantity.AsApproximateFloat64(), true
	}
}

// measurements are the metrics of members.
type measurements struct {
	figures  []figure
	gauges   []*prometheus.GaugeVec // one for each figure
	duration *prometheus.HistogramVec
}

func newMeasurements(registry prometheus.Registerer) (*measurements, error) {
	m := &measurements{figures: figures()}
	for _, each := range m.figures {
		gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: each.name, Help: each.help}, []string{memberLabel})
		if err := observe.Register(registry, &gauge); err != nil {
			return nil, err
		}
		m.gauges = append(m.gauges, gauge)
	}
	m.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "cluster_sync_status_duration_seconds", Help: "Duration in seconds of one look at the member.",
	}, []string{memberLabel})
	return m, observe.Register(registry, &m.duration)
}

// record shows what a Cluster tells. A number that it does not tell any more
// stays at what it told last.
func (m *measurements) record(cluster *clusterv1alpha1.Cluster, took time.Duration) {
	for i, each := range m.figures {
		if value, ok := each.of(cluster); ok {
			m.gauges[i].WithLabelValues(cluster.Name).Set(value)
		}
	}
	m.duration.WithLabelValues(cluster.Name).Observe(took.Seconds())
}

// forget drops everything of a member that is gone.
func (m *measurements) forget(member string) {
	for _, gauge := range m.gauges {
		gauge.DeleteLabelValues(member)
	}
	m.duration.DeleteLabelValues(member)
}
