package capacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func resourceList(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func requirementsOf(pairs ...string) *workv1alpha2.ReplicaRequirements {
	return &workv1alpha2.ReplicaRequirements{ResourceRequest: resourceList(pairs...)}
}

func clusterWithSummary(summary *clusterv1alpha1.ResourceSummary) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{Status: clusterv1alpha1.ClusterStatus{ResourceSummary: summary}}
}

func clusterWithAllocatable(pairs ...string) *clusterv1alpha1.Cluster {
	return clusterWithSummary(&clusterv1alpha1.ResourceSummary{Allocatable: resourceList(pairs...)})
}

// clusterWithGrades returns a cluster with large sums over all nodes. counts are the numbers of
// nodes in three grades: below 1 core, from 1 core and 4Gi, from 2 cores and 16Gi.
func clusterWithGrades(counts ...int) *clusterv1alpha1.Cluster {
	cluster := clusterWithAllocatable("pods", "10000", "cpu", "10000", "memory", "10000Gi")
	for i, least := range []corev1.ResourceList{resourceList("cpu", "0", "memory", "0"), resourceList("cpu", "1", "memory", "4Gi"), resourceList("cpu", "2", "memory", "16Gi")} {
		cluster.Spec.ResourceModels = append(cluster.Spec.ResourceModels, clusterv1alpha1.ResourceModel{
			Grade: uint(i), Ranges: []clusterv1alpha1.ResourceModelRange{
				{Name: "cpu", Min: least["cpu"]}, {Name: "memory", Min: least["memory"]},
			},
		})
	}
	for i, count := range counts {
		cluster.Status.ResourceSummary.AllocatableModelings = append(cluster.Status.ResourceSummary.AllocatableModelings,
			clusterv1alpha1.AllocatableModeling{Grade: uint(i), Count: count})
	}
	return cluster
}

func withoutModels(cluster *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	cluster.Spec.ResourceModels = nil
	return cluster
}

// availableReplicas returns how many more replicas with these requirements fit into the cluster.
func availableReplicas(cluster *clusterv1alpha1.Cluster, requirements *workv1alpha2.ReplicaRequirements, models bool) int32 {
	demand := Demand{Requirements: requirements}
	return demand.Counter(models)(cluster)
}

// availableSets returns how many more whole sets of components fit into the cluster.
func availableSets(cluster *clusterv1alpha1.Cluster, components []workv1alpha2.Component, models bool) int32 {
	return newRoom(cluster, models, nil).availableSets(components)
}

func TestAvailableReplicas(t *testing.T) {
	cases := map[string]struct {
		cluster      *clusterv1alpha1.Cluster
		requirements *workv1alpha2.ReplicaRequirements
		models       bool
		want         int32
	}{
		"a cluster that reports nothing has no capacity": {clusterWithSummary(nil), nil, true, 0},
		"a cluster without free pods has no capacity":    {clusterWithAllocatable("cpu", "10"), nil, true, 0},
		"without requirements only pods limit":           {clusterWithAllocatable("pods", "7"), nil, true, 7},
		"zero requirements equal no requirements":        {clusterWithAllocatable("pods", "7"), requirementsOf("cpu", "0"), true, 7},
		"allocated and allocating are subtracted": {
			clusterWithSummary(&clusterv1alpha1.ResourceSummary{
				Allocatable: resourceList("pods", "110", "cpu", "10"), Allocated: resourceList("pods", "10", "cpu", "3"), Allocating: resourceList("pods", "2", "cpu", "1"),
			}), requirementsOf("cpu", "2"), true, 3},
		"the scarcest resource limits": {
			clusterWithAllocatable("pods", "110", "cpu", "10", "memory", "4Gi"), requirementsOf("cpu", "1", "memory", "1Gi"), true, 4},
		"pods limit what resources would allow": {clusterWithAllocatable("pods", "3", "cpu", "10"), requirementsOf("cpu", "1"), true, 3},
		"a missing resource means no capacity": {
			clusterWithAllocatable("pods", "110", "cpu", "10"), requirementsOf("nvidia.com/gpu", "1"), true, 0},
		"an overused resource means no capacity": {
			clusterWithSummary(&clusterv1alpha1.ResourceSummary{Allocatable: resourceList("pods", "9", "cpu", "1"), Allocated: resourceList("cpu", "2")}), requirementsOf("cpu", "1m"), true, 0},
		"cpu counts in thousandths":             {clusterWithAllocatable("pods", "110", "cpu", "1"), requirementsOf("cpu", "300m"), true, 3},
		"decimal and binary notation are alike": {clusterWithAllocatable("pods", "110", "memory", "1Gi"), requirementsOf("memory", "1G"), true, 1},
		"nodes of a grade count with its minimum": {
			clusterWithGrades(0, 2, 3), requirementsOf("cpu", "1"), true, 2*1 + 3*2},
		"the remainder of a node is not counted":             {clusterWithGrades(0, 4, 0), requirementsOf("cpu", "600m"), true, 4},
		"the lowest grade fits no requests":                  {clusterWithGrades(50, 0, 0), requirementsOf("cpu", "1m"), true, 0},
		"a node takes the default number of pods":            {clusterWithGrades(1, 1, 0), requirementsOf(), true, 220},
		"models disabled: the sum counts":                    {clusterWithGrades(0, 2, 3), requirementsOf("cpu", "1"), false, 10000},
		"grades without models fall back to the sum":         {withoutModels(clusterWithGrades(0, 2, 3)), requirementsOf("cpu", "1"), true, 10000},
		"a negative number of nodes falls back to the sum":   {clusterWithGrades(0, -1, 3), requirementsOf("cpu", "1"), true, 10000},
		"a resource missing in the grades means no capacity": {clusterWithGrades(0, 2, 3), requirementsOf("nvidia.com/gpu", "1"), true, 0},
		"resources other than node resources do not limit":   {clusterWithGrades(0, 2, 3), requirementsOf("cpu", "1", "limits.cpu", "9"), true, 8},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := availableReplicas(tc.cluster, tc.requirements, tc.models); got != tc.want {
				t.Errorf("Replicas = %d, want %d", got, tc.want)
			}
		})
	}
}

func component(replicas int32, pairs ...string) workv1alpha2.Component {
	c := workv1alpha2.Component{Replicas: replicas}
	if len(pairs) > 0 {
		c.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: resourceList(pairs...)}
	}
	return c
}

func TestAvailableSets(t *testing.T) {
	cases := map[string]struct {
		cluster    *clusterv1alpha1.Cluster
		components []workv1alpha2.Component
		models     bool
		want       int32
	}{
		"a cluster that reports nothing has no capacity": {clusterWithSummary(nil), []workv1alpha2.Component{component(1)}, true, 0},
		"components without replicas need no capacity":   {clusterWithAllocatable("pods", "7"), []workv1alpha2.Component{component(0, "cpu", "1")}, true, 7},
		"every replica of a set is a pod":                {clusterWithAllocatable("pods", "7"), []workv1alpha2.Component{component(1), component(2)}, true, 2},
		"a set needs the sum of its components": {
			clusterWithAllocatable("pods", "100", "cpu", "10"), []workv1alpha2.Component{component(1, "cpu", "1"), component(2, "cpu", "500m")}, true, 5},
		"a missing resource means no capacity": {
			clusterWithAllocatable("pods", "100", "cpu", "10"), []workv1alpha2.Component{component(1, "nvidia.com/gpu", "1")}, true, 0},
		"decimal and binary notation are alike": {
			clusterWithAllocatable("pods", "100", "memory", "3Gi"), []workv1alpha2.Component{component(1, "memory", "1G")}, true, 3},
		"sets must fit onto nodes": {
			clusterWithGrades(0, 1, 2), []workv1alpha2.Component{component(1, "cpu", "1"), component(1, "cpu", "2")}, true, 1},
		"a set may spread over nodes": {
			clusterWithGrades(0, 3, 0), []workv1alpha2.Component{component(3, "cpu", "1")}, true, 1},
		"a component that fits onto no node means no capacity": {
			clusterWithGrades(0, 3, 0), []workv1alpha2.Component{component(1, "cpu", "1"), component(1, "cpu", "2")}, true, 0},
		"models disabled: the sum counts": {
			clusterWithGrades(0, 1, 1), []workv1alpha2.Component{component(1, "cpu", "4"), component(1, "cpu", "4")}, false, 1250},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := availableSets(tc.cluster, tc.components, tc.models); got != tc.want {
				t.Errorf("Sets = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestSingleReplicaSetsEqualReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cluster := clusterWithGrades(rapid.IntRange(0, 5).Draw(t, "none"), rapid.IntRange(0, 50).Draw(t, "small"), rapid.IntRange(0, 50).Draw(t, "large"))
		request := corev1.ResourceList{
			"cpu":    *resource.NewMilliQuantity(rapid.Int64Range(1, 3000).Draw(t, "cpu"), resource.DecimalSI),
			"memory": *resource.NewQuantity(rapid.Int64Range(1, 20<<30).Draw(t, "memory"), resource.BinarySI),
		}
		models := rapid.Bool().Draw(t, "models")
		replicas := availableReplicas(cluster, &workv1alpha2.ReplicaRequirements{ResourceRequest: request}, models)
		sets := availableSets(cluster, []workv1alpha2.Component{{Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: request}}}, models)
		if replicas != sets {
			t.Errorf("%d replicas but %d sets", replicas, sets)
		}
	})
}

func TestHasGrown(t *testing.T) {
	full := func() *clusterv1alpha1.ResourceSummary {
		return &clusterv1alpha1.ResourceSummary{Allocatable: resourceList("cpu", "4"), Allocated: resourceList("cpu", "3"), Allocating: resourceList("cpu", "1"),
			AllocatableModelings: []clusterv1alpha1.AllocatableModeling{{Grade: 0, Count: 2}, {Grade: 1, Count: 1}}}
	}
	with := func(change func(*clusterv1alpha1.ResourceSummary)) *clusterv1alpha1.ResourceSummary {
		s := full()
		change(s)
		return s
	}
	cases := map[string]struct {
		before, after *clusterv1alpha1.ResourceSummary
		want          bool
	}{
		"no report":                          {full(), nil, false},
		"the first report":                   {nil, full(), true},
		"the same report":                    {full(), full(), false},
		"a larger cluster":                   {full(), with(func(s *clusterv1alpha1.ResourceSummary) { s.Allocatable = resourceList("cpu", "5") }), true},
		"less overuse without free capacity": {with(func(s *clusterv1alpha1.ResourceSummary) { s.Allocated = resourceList("cpu", "9") }), full(), false},
		"less allocated":                     {full(), with(func(s *clusterv1alpha1.ResourceSummary) { s.Allocated = nil }), true},
		"more allocated":                     {full(), with(func(s *clusterv1alpha1.ResourceSummary) { s.Allocated = resourceList("cpu", "4") }), false},
		"less allocating":                    {full(), with(func(s *clusterv1alpha1.ResourceSummary) { s.Allocating = nil }), true},
		"more nodes of a grade":              {full(), with(func(s *clusterv1alpha1.ResourceSummary) { s.AllocatableModelings[1].Count = 2 }), true},
		"fewer nodes of a grade":             {full(), with(func(s *clusterv1alpha1.ResourceSummary) { s.AllocatableModelings[1].Count = 0 }), false},
		"a new resource":                     {full(), with(func(s *clusterv1alpha1.ResourceSummary) { s.Allocatable["nvidia.com/gpu"] = resource.MustParse("1") }), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := HasGrown(tc.before, tc.after); got != tc.want {
				t.Errorf("Grew = %v, want %v", got, tc.want)
			}
		})
	}
}
