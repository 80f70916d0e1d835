package placement

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// fleetMember returns a cluster with the size of real ones: 50 API groups, a resource summary, a
// region, labels, and for every tenth cluster a taint. Each cluster has strings of its own, as after
// decoding.
func fleetMember(i int) *clusterv1alpha1.Cluster {
	cluster := member(fmt.Sprintf("member-%04d", i), inRegion(fmt.Sprintf("region-%d", i%20)),
		labelled(map[string]string{"tier": "gold", "environment": fmt.Sprintf("env-%d", i%3), "topology/rack": fmt.Sprintf("rack-%d", i%40)}))
	cluster.Status.APIEnablements = nil
	for group := range 50 {
		enablement := clusterv1alpha1.APIEnablement{GroupVersion: fmt.Sprintf("group-%02d.example.io/v1", group)}
		if group == 25 {
			enablement.GroupVersion = fmt.Sprintf("%s/v1", "apps")
		}
		for _, kind := range []string{"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"} {
			enablement.Resources = append(enablement.Resources, clusterv1alpha1.APIResource{Name: kind, Kind: kind})
		}
		cluster.Status.APIEnablements = append(cluster.Status.APIEnablements, enablement)
	}
	if i%10 == 9 {
		cluster.Spec.Taints = []corev1.Taint{{Key: "maintenance", Value: "planned", Effect: corev1.TaintEffectNoSchedule}}
	}
	cluster.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
		Allocatable: resourcesOf(int64(i*7919%1009+100), 4096, 20000),
		Allocated:   resourcesOf(50, 1024, 300),
	}
	return cluster
}

func resourcesOf(cores, gibibytes, pods int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(cores, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(gibibytes<<30, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(pods, resource.DecimalSI),
	}
}

// benchmarkPlacements returns the placements of BenchmarkSchedule by their names.
func benchmarkPlacements() map[string]policyv1alpha1.Placement {
	gold := &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
	weighted := staticWeight()
	for i := range 10 {
		weighted.WeightPreference.StaticWeightList = append(weighted.WeightPreference.StaticWeightList,
			policyv1alpha1.StaticClusterWeight{TargetCluster: *gold, Weight: int64(i + 1)})
	}
	regional := []policyv1alpha1.SpreadConstraint{spreadBy("region", 2, 5), spreadBy("cluster", 10, 100)}
	return map[string]policyv1alpha1.Placement{
		"duplicated":     {ClusterAffinity: gold, ReplicaScheduling: duplicate},
		"static weight":  {ClusterAffinity: gold, ReplicaScheduling: weighted},
		"dynamic weight": {ClusterAffinity: gold, ReplicaScheduling: dynamicWeight},
		"aggregated":     {ClusterAffinity: gold, ReplicaScheduling: aggregate},
		"by region":      {ClusterAffinity: gold, ReplicaScheduling: aggregate, SpreadConstraints: regional},
	}
}

// BenchmarkSchedule places one Deployment: with known capacities, and including the estimate of the
// capacity of every cluster from its resource summary.
func BenchmarkSchedule(b *testing.B) {
	requirements := &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("512Mi"),
	}}
	for _, size := range []int{50, 100, 1000} {
		clusters := make([]*clusterv1alpha1.Cluster, size)
		for i := range clusters {
			clusters[i] = fleetMember(i)
		}
		for name, placement := range benchmarkPlacements() {
			spec := deployment(int32(10*size), placement)
			spec.ReplicaRequirements = requirements
			demand := DemandOf(spec, Features{})
			estimate := func(clusters []*clusterv1alpha1.Cluster) []int32 {
				estimates, available := make([]int32, len(clusters)), demand.Counter(true)
				for i, cluster := range clusters {
					estimates[i] = available(cluster)
				}
				return estimates
			}
			b.Run(fmt.Sprintf("%d clusters/%s, with estimates", size, name), func(b *testing.B) {
				benchmarkSchedule(b, spec, clusters, estimate)
			})
			var known []int32 // the filters select the same clusters in each iteration
			b.Run(fmt.Sprintf("%d clusters/%s", size, name), func(b *testing.B) {
				benchmarkSchedule(b, spec, clusters, func(clusters []*clusterv1alpha1.Cluster) []int32 {
					if len(known) != len(clusters) {
						known = estimate(clusters)
					}
					return known
				})
			})
		}
	}
}

func benchmarkSchedule(b *testing.B, spec *workv1alpha2.ResourceBindingSpec, clusters []*clusterv1alpha1.Cluster, estimate func([]*clusterv1alpha1.Cluster) []int32) {
	b.Helper()
	in := newInput(spec, clusters, nil)
	in.EstimateReplicas = estimate
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Schedule(in); err != nil {
			b.Fatal(err)
		}
	}
}
