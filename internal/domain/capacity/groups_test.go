package capacity

import (
	"math"
	"testing"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// setsOnHugeCluster returns a function that calls availableSets for a cluster with unlimited sums
// and the given number of nodes, all in the largest grade.
func setsOnHugeCluster(nodes int) func() int32 {
	cluster := clusterWithGrades(0, 0, nodes)
	cluster.Status.ResourceSummary.Allocatable = resourceList("pods", "9223372036854775807", "cpu", "9223372036854775807", "memory", "9223372036854775807")
	components := []workv1alpha2.Component{component(1, "cpu", "1"), component(2, "cpu", "500m")}
	return func() int32 { return availableSets(cluster, components, true) }
}

// TestCostIsIndependentOfReportedNodes checks that memory and time of the scheduler are not
// proportional to the number of nodes, because a cluster reports that number itself.
func TestCostIsIndependentOfReportedNodes(t *testing.T) {
	for name, nodes := range map[string]int{"a million nodes": 1 << 20, "as many nodes as the field can hold": math.MaxInt32} {
		t.Run(name, func(t *testing.T) {
			sets := setsOnHugeCluster(nodes)
			if allocations := testing.AllocsPerRun(1, func() { sets() }); allocations > 8*maxNodes {
				t.Errorf("%.0f allocations for %d reported nodes, want at most %d", allocations, nodes, 8*maxNodes)
			}
		})
	}
}

func TestSetsOnManyNodes(t *testing.T) {
	cases := map[string]struct {
		nodes int
		want  int32
	}{
		"below the limit every node is simulated":         {maxNodes, maxNodes},
		"above the limit groups of nodes are simulated":   {10 * maxNodes, 10 * maxNodes},
		"a remainder smaller than a group is not counted": {10*maxNodes + 1, 10 * (maxNodes - maxNodes/11)},
		"the largest number that the field can hold":      {math.MaxInt32, math.MaxInt32 - math.MaxInt32/maxNodes - maxNodes},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := setsOnHugeCluster(tc.nodes)()
			if got < tc.want || int64(got) > int64(tc.nodes) {
				t.Errorf("%d sets fit on %d nodes that take one each, want at least %d", got, tc.nodes, tc.want)
			}
		})
	}
}

func TestLargeSetIsDividedAmongNodeGroups(t *testing.T) {
	cluster := clusterWithGrades(0, 0, 20*maxNodes)
	cluster.Status.ResourceSummary.Allocatable = resourceList("pods", "1e9", "cpu", "1e9", "memory", "1e18")
	set := []workv1alpha2.Component{component(10*maxNodes, "cpu", "2")}
	if got := availableSets(cluster, set, true); got != 1 && got != 2 {
		t.Errorf("%d sets, want 1 or 2: two fit", got)
	}
}
