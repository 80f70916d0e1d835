package capacity

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func requiring(pairs ...string) *workv1alpha2.ReplicaRequirements {
	return &workv1alpha2.ReplicaRequirements{ResourceRequest: list(pairs...)}
}

func reporting(summary *clusterv1alpha1.ResourceSummary) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{Status: clusterv1alpha1.ClusterStatus{ResourceSummary: summary}}
}

func offering(pairs ...string) *clusterv1alpha1.Cluster {
	return reporting(&clusterv1alpha1.ResourceSummary{Allocatable: list(pairs...)})
}

// graded has plenty in sum, on so many nodes of each of three grades: up to 1 core,
// from 1 core and 4Gi, from 2 cores and 16Gi.
func graded(counts ...int) *clusterv1alpha1.Cluster {
	cluster := offering("pods", "10000", "cpu", "10000", "memory", "10000Gi")
	for i, least := range []corev1.ResourceList{list("cpu", "0", "memory", "0"), list("cpu", "1", "memory", "4Gi"), list("cpu", "2", "memory", "16Gi")} {
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

func TestReplicas(t *testing.T) {
	cases := map[string]struct {
		cluster      *clusterv1alpha1.Cluster
		requirements *workv1alpha2.ReplicaRequirements
		models       bool
		want         int32
	}{
		"a cluster that reports nothing has no room": {reporting(nil), nil, true, 0},
		"a cluster without pods left has no room":    {offering("cpu", "10"), nil, true, 0},
		"without requirements only pods limit":       {offering("pods", "7"), nil, true, 7},
		"requirements of nothing are as none":        {offering("pods", "7"), requiring("cpu", "0"), true, 7},
		"allocated and allocating are taken off": {
			reporting(&clusterv1alpha1.ResourceSummary{
				Allocatable: list("pods", "110", "cpu", "10"), Allocated: list("pods", "10", "cpu", "3"), Allocating: list("pods", "2", "cpu", "1"),
			}), requiring("cpu", "2"), true, 3},
		"the scarcest resource decides": {
			offering("pods", "110", "cpu", "10", "memory", "4Gi"), requiring("cpu", "1", "memory", "1Gi"), true, 4},
		"pods limit what resources would allow": {offering("pods", "3", "cpu", "10"), requiring("cpu", "1"), true, 3},
		"a resource that is not there is no room": {
			offering("pods", "110", "cpu", "10"), requiring("nvidia.com/gpu", "1"), true, 0},
		"a resource that is overused is no room": {
			reporting(&clusterv1alpha1.ResourceSummary{Allocatable: list("pods", "9", "cpu", "1"), Allocated: list("cpu", "2")}), requiring("cpu", "1m"), true, 0},
		"cpu counts in thousandths":             {offering("pods", "110", "cpu", "1"), requiring("cpu", "300m"), true, 3},
		"decimal and binary notation are alike": {offering("pods", "110", "memory", "1Gi"), requiring("memory", "1G"), true, 1},
		"nodes of a grade count by the least of it": {
			graded(0, 2, 3), requiring("cpu", "1"), true, 2*1 + 3*2},
		"what is left over on a node is lost":                   {graded(0, 4, 0), requiring("cpu", "600m"), true, 4},
		"the lowest grade takes nothing that needs something":   {graded(50, 0, 0), requiring("cpu", "1m"), true, 0},
		"a node takes as many pods as nodes usually do":         {graded(1, 1, 0), requiring(), true, 220},
		"without the models the sum counts":                     {graded(0, 2, 3), requiring("cpu", "1"), false, 10000},
		"grades without models fall back to the sum":            {withoutModels(graded(0, 2, 3)), requiring("cpu", "1"), true, 10000},
		"a negative number of nodes falls back to the sum":      {graded(0, -1, 3), requiring("cpu", "1"), true, 10000},
		"a resource that the grades do not know is no room":     {graded(0, 2, 3), requiring("nvidia.com/gpu", "1"), true, 0},
		"resources that nodes do not have do not count on them": {graded(0, 2, 3), requiring("cpu", "1", "limits.cpu", "9"), true, 8},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Replicas(tc.cluster, tc.requirements, tc.models); got != tc.want {
				t.Errorf("Replicas = %d, want %d", got, tc.want)
			}
		})
	}
}

func component(replicas int32, pairs ...string) workv1alpha2.Component {
	c := workv1alpha2.Component{Replicas: replicas}
	if len(pairs) > 0 {
		c.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: list(pairs...)}
	}
	return c
}

func TestSets(t *testing.T) {
	cases := map[string]struct {
		cluster    *clusterv1alpha1.Cluster
		components []workv1alpha2.Component
		models     bool
		want       int32
	}{
		"a cluster that reports nothing has no room": {reporting(nil), []workv1alpha2.Component{component(1)}, true, 0},
		"components without replicas take no room":   {offering("pods", "7"), []workv1alpha2.Component{component(0, "cpu", "1")}, true, 7},
		"every replica of a set is a pod":            {offering("pods", "7"), []workv1alpha2.Component{component(1), component(2)}, true, 2},
		"a set needs the sum of its components": {
			offering("pods", "100", "cpu", "10"), []workv1alpha2.Component{component(1, "cpu", "1"), component(2, "cpu", "500m")}, true, 5},
		"a missing resource is no room": {
			offering("pods", "100", "cpu", "10"), []workv1alpha2.Component{component(1, "nvidia.com/gpu", "1")}, true, 0},
		"decimal and binary notation are alike": {
			offering("pods", "100", "memory", "3Gi"), []workv1alpha2.Component{component(1, "memory", "1G")}, true, 3},
		"sets are laid out on nodes": {
			graded(0, 1, 2), []workv1alpha2.Component{component(1, "cpu", "1"), component(1, "cpu", "2")}, true, 1},
		"a set may spread over nodes": {
			graded(0, 3, 0), []workv1alpha2.Component{component(3, "cpu", "1")}, true, 1},
		"a component that no node can take is no room": {
			graded(0, 3, 0), []workv1alpha2.Component{component(1, "cpu", "1"), component(1, "cpu", "2")}, true, 0},
		"without the models the sum counts": {
			graded(0, 1, 1), []workv1alpha2.Component{component(1, "cpu", "4"), component(1, "cpu", "4")}, false, 1250},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Sets(tc.cluster, tc.components, tc.models); got != tc.want {
				t.Errorf("Sets = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestASetOfOneComponentOfOneReplicaIsAReplica(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cluster := graded(rapid.IntRange(0, 5).Draw(t, "none"), rapid.IntRange(0, 50).Draw(t, "small"), rapid.IntRange(0, 50).Draw(t, "large"))
		request := corev1.ResourceList{
			"cpu":    *resource.NewMilliQuantity(rapid.Int64Range(1, 3000).Draw(t, "cpu"), resource.DecimalSI),
			"memory": *resource.NewQuantity(rapid.Int64Range(1, 20<<30).Draw(t, "memory"), resource.BinarySI),
		}
		models := rapid.Bool().Draw(t, "models")
		replicas := Replicas(cluster, &workv1alpha2.ReplicaRequirements{ResourceRequest: request}, models)
		sets := Sets(cluster, []workv1alpha2.Component{{Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: request}}}, models)
		if replicas != sets {
			t.Errorf("%d replicas but %d sets", replicas, sets)
		}
	})
}

func TestGrew(t *testing.T) {
	full := func() *clusterv1alpha1.ResourceSummary {
		return &clusterv1alpha1.ResourceSummary{Allocatable: list("cpu", "4"), Allocated: list("cpu", "3"), Allocating: list("cpu", "1"),
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
		"nothing reported is no growth":           {full(), nil, false},
		"the first report is":                     {nil, full(), true},
		"the same is not":                         {full(), full(), false},
		"a larger cluster is":                     {full(), with(func(s *clusterv1alpha1.ResourceSummary) { s.Allocatable = list("cpu", "5") }), true},
		"more than is overused is not":            {with(func(s *clusterv1alpha1.ResourceSummary) { s.Allocated = list("cpu", "9") }), full(), false},
		"less used is":                            {full(), with(func(s *clusterv1alpha1.ResourceSummary) { s.Allocated = nil }), true},
		"more used is not":                        {full(), with(func(s *clusterv1alpha1.ResourceSummary) { s.Allocated = list("cpu", "4") }), false},
		"less waiting is":                         {full(), with(func(s *clusterv1alpha1.ResourceSummary) { s.Allocating = nil }), true},
		"more nodes of a grade are":               {full(), with(func(s *clusterv1alpha1.ResourceSummary) { s.AllocatableModelings[1].Count = 2 }), true},
		"fewer nodes of a grade are not":          {full(), with(func(s *clusterv1alpha1.ResourceSummary) { s.AllocatableModelings[1].Count = 0 }), false},
		"a resource that was not there before is": {full(), with(func(s *clusterv1alpha1.ResourceSummary) { s.Allocatable["nvidia.com/gpu"] = resource.MustParse("1") }), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Grew(tc.before, tc.after); got != tc.want {
				t.Errorf("Grew = %v, want %v", got, tc.want)
			}
		})
	}
}

func FuzzArithmeticSaturates(f *testing.F) {
	f.Add(int64(math.MaxInt64), int64(2))
	f.Add(int64(0), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, a, b int64) {
		a, b = max(a, 0), max(b, 0)
		if sum := add(a, b); sum < a || sum < b {
			t.Errorf("%d + %d = %d", a, b, sum)
		}
		if product := multiply(a, b); product < 0 || a > 0 && product/a > b || a > 0 && b > 0 && product < max(a, b) {
			t.Errorf("%d * %d = %d", a, b, product)
		}
		if difference := subtract(a, b); a >= b != (difference >= 0) {
			t.Errorf("%d - %d = %d", a, b, difference)
		}
		if n := clamp(a); n < 0 {
			t.Errorf("%d became %d", a, n)
		}
	})
}
