package capacity

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func cpuComponent(replicas int32, cpu string) workv1alpha2.Component {
	component := workv1alpha2.Component{Name: "web", Replicas: replicas}
	if cpu != "" {
		component.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
	}
	return component
}

func assume(components ...workv1alpha2.Component) []AssumedWorkload {
	var assumed []AssumedWorkload
	for i := range components {
		assumed = append(assumed, AssumedWorkload{Namespace: "shop", Components: components[i : i+1]})
	}
	return assumed
}

func TestAssumedWorkloadsUseCapacity(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{}
	cluster.Name = "m1"
	cluster.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse("12"), "pods": resource.MustParse("20")},
		Allocating:  corev1.ResourceList{"cpu": resource.MustParse("2")},
	}
	graded := cluster.DeepCopy()
	graded.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{{Grade: 1, Ranges: []clusterv1alpha1.ResourceModelRange{{Name: "cpu", Min: resource.MustParse("4")}}}}
	graded.Status.ResourceSummary.AllocatableModelings = []clusterv1alpha1.AllocatableModeling{{Grade: 1, Count: 3}}
	tests := map[string]struct {
		cluster *clusterv1alpha1.Cluster
		assumed []AssumedWorkload
		demand  Demand
		want    int32
	}{
		"nothing is assumed":                    {cluster, nil, Demand{Requirements: cpuRequirements("2")}, 5},
		"replicas of another workload":          {cluster, assume(cpuComponent(3, "2")), Demand{Requirements: cpuRequirements("2")}, 2},
		"the whole cluster":                     {cluster, assume(cpuComponent(4, "2"), cpuComponent(5, "2")), Demand{Requirements: cpuRequirements("2")}, 0},
		"assumed replicas use Pods":             {cluster, assume(cpuComponent(15, "")), Demand{}, 5},
		"more Pods than the cluster has":        {cluster, assume(cpuComponent(math.MaxInt32, "")), Demand{}, 0},
		"sets":                                  {cluster, assume(cpuComponent(2, "2")), Demand{Components: []workv1alpha2.Component{cpuComponent(3, "1")}}, 2},
		"grades without assumed workloads":      {graded, nil, Demand{Requirements: cpuRequirements("3")}, 3},
		"a replica takes one node of a grade":   {graded, assume(cpuComponent(1, "2")), Demand{Requirements: cpuRequirements("3")}, 2},
		"replicas on the same node of a grade":  {graded, assume(cpuComponent(2, "2")), Demand{Requirements: cpuRequirements("3")}, 2},
		"replicas on two nodes of a grade":      {graded, assume(cpuComponent(3, "2")), Demand{Requirements: cpuRequirements("3")}, 1},
		"replicas larger than all nodes":        {graded, assume(cpuComponent(1, "5")), Demand{Requirements: cpuRequirements("3")}, 3},
		"sets on grades":                        {graded, assume(cpuComponent(1, "2")), Demand{Components: []workv1alpha2.Component{cpuComponent(1, "3")}}, 2},
		"the assumed workloads of others count": {graded, append(assume(cpuComponent(1, "3")), assume(cpuComponent(1, "4"))...), Demand{Requirements: cpuRequirements("3")}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.demand.Assumed = map[string][]AssumedWorkload{"m1": test.assumed, "m2": assume(cpuComponent(100, "1"))}
			before := test.cluster.DeepCopy()
			if got := test.demand.Counter(true)(test.cluster); got != test.want {
				t.Errorf("%d fit, want %d", got, test.want)
			}
			if diff := cmp.Diff(before, test.cluster); diff != "" {
				t.Errorf("the cluster was modified (-want +got):\n%s", diff)
			}
		})
	}
}

func cpuRequirements(cpu string) *workv1alpha2.ReplicaRequirements {
	return &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
}

func TestDifferentRequestsAreBounded(t *testing.T) {
	var assumed []AssumedWorkload
	for i := range 1000 {
		assumed = append(assumed, assume(cpuComponent(1, fmt.Sprintf("%dm", i+1)))...)
	}
	grades := []grade{{nodes: 1 << 40, free: map[corev1.ResourceName]int64{"cpu": 4000, "pods": podsPerNode}}}
	parts := combineAssumed(append(assumed, assumed...))
	if len(parts) != 1000 || parts[0].replicas != 2 {
		t.Fatalf("%d requests, the first %+v", len(parts), parts[0])
	}
	for _, part := range parts[:maxReservations] {
		grades = reserveOnGrades(grades, part)
	}
	if len(grades) > 2*maxReservations+1 {
		t.Errorf("%d grades", len(grades))
	}
}

// Placing on grades has the same result as placing on the single nodes.
func TestReserveOnGradesEqualsPlacingOnNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := ResourceColumns{"cpu", "pods"}
		var grades []grade
		var nodes []ResourceVector
		for i := range rapid.IntRange(0, 3).Draw(t, "grades") {
			g := grade{number: uint(i), nodes: rapid.Int64Range(1, 4).Draw(t, "nodes"), free: map[corev1.ResourceName]int64{"cpu": rapid.Int64Range(0, 12).Draw(t, "cpu"), "pods": 5}}
			grades = append(grades, g)
			for range g.nodes {
				nodes = append(nodes, columns.Vector(g.free))
			}
		}
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			part := componentRequest{replicas: rapid.Int64Range(1, 30).Draw(t, "replicas"), request: map[corev1.ResourceName]int64{"cpu": rapid.Int64Range(0, 5).Draw(t, "request")}}
			grades = reserveOnGrades(grades, part)
			PlaceSets(nodes, []SetPart{{Replicas: 1, Request: columns.Vector(PodRequest(part.request))}}, part.replicas)
		}
		var got []ResourceVector
		for _, g := range grades {
			for range g.nodes {
				got = append(got, columns.Vector(g.free))
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(nodes) {
			t.Errorf("free %v, want %v", got, nodes)
		}
	})
}
