package clusterstatus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func fullCluster(name string) *clusterv1alpha1.Cluster {
	list := func(cpu, memory, pods string) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse(pods),
		}
	}
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: clusterv1alpha1.ClusterStatus{
			Conditions:      []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}},
			NodeSummary:     &clusterv1alpha1.NodeSummary{TotalNum: 3, ReadyNum: 2},
			ResourceSummary: &clusterv1alpha1.ResourceSummary{Allocatable: list("7500m", "2Ki", "330"), Allocated: list("250m", "1Ki", "12")},
		},
	}
}

// gatherSeries returns the registry's series with their values. A histogram's value is its number of
// observations.
func gatherSeries(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			label := metric.GetLabel()[0]
			value := metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			series[family.GetName()+"{"+label.GetName()+"="+label.GetValue()+"}"] = value
		}
	}
	return series
}

func TestRecordClusterMetrics(t *testing.T) {
	lost := fullCluster("m1")
	lost.Status.Conditions[0].Status = metav1.ConditionUnknown
	all := map[string]float64{
		"cluster_ready_state{member_cluster=m1}": 1,
		"cluster_node_number{member_cluster=m1}": 3, "cluster_ready_node_number{member_cluster=m1}": 2,
		"cluster_memory_allocatable_bytes{member_cluster=m1}": 2048, "cluster_cpu_allocatable_number{member_cluster=m1}": 7.5,
		"cluster_pod_allocatable_number{member_cluster=m1}": 330,
		"cluster_memory_allocated_bytes{member_cluster=m1}": 1024, "cluster_cpu_allocated_number{member_cluster=m1}": 0.25,
		"cluster_pod_allocated_number{member_cluster=m1}":         12,
		"cluster_sync_status_duration_seconds{member_cluster=m1}": 1,
	}
	without := func(ready float64) map[string]float64 {
		return map[string]float64{
			"cluster_ready_state{member_cluster=m1}": ready, "cluster_sync_status_duration_seconds{member_cluster=m1}": 1,
		}
	}
	unready := make(map[string]float64, len(all))
	for name, value := range all {
		unready[name] = value
	}
	unready["cluster_ready_state{member_cluster=m1}"] = 0
	for name, tc := range map[string]struct {
		cluster *clusterv1alpha1.Cluster
		want    map[string]float64
	}{
		"a cluster with complete status": {fullCluster("m1"), all},
		"an unreachable cluster":         {lost, unready},
		"a cluster without status":       {&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}, without(0)},
		"a cluster without resources": {&clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "m1"},
			Status:     clusterv1alpha1.ClusterStatus{Conditions: fullCluster("m1").Status.Conditions},
		}, without(1)},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			m, err := newClusterMetrics(registry)
			if err != nil {
				t.Fatal(err)
			}
			m.record(tc.cluster, time.Second)
			if diff := cmp.Diff(tc.want, gatherSeries(t, registry)); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeleteClusterMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newClusterMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.record(fullCluster("m1"), time.Second)
	stays := gatherSeries(t, registry)
	m.record(fullCluster("m2"), time.Second)
	m.deleteCluster("m2")
	if diff := cmp.Diff(stays, gatherSeries(t, registry)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
