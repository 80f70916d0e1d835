package placement

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// scheduledInput returns the input for the next scheduling of a binding whose placement is applied.
func scheduledInput(t testing.TB, spec *workv1alpha2.ResourceBindingSpec, clusters []*clusterv1alpha1.Cluster, replicas map[string]int32) Input {
	t.Helper()
	in := newInput(spec, clusters, replicas)
	in.AppliedPlacement = mustEncodePlacement(t, spec.Placement)
	return in
}

func TestRegionInUseIsPreferredToCapacity(t *testing.T) {
	oneRegion := func(strategy *policyv1alpha1.ReplicaSchedulingStrategy, most int) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{ReplicaScheduling: strategy, SpreadConstraints: []policyv1alpha1.SpreadConstraint{spreadBy("region", 1, most), spreadBy("cluster", 1, 2)}}
	}
	eu1, eu2, us1, us2 := member("eu1", inRegion("eu")), member("eu2", inRegion("eu")), member("us1", inRegion("us")), member("us2", inRegion("us"))
	all := []*clusterv1alpha1.Cluster{eu1, eu2, us1, us2}
	huge := map[string]int32{"eu1": 20, "eu2": 20, "us1": 9000, "us2": 9000}
	tests := map[string]struct {
		placement policyv1alpha1.Placement
		replicas  int32
		current   targets
		clusters  []*clusterv1alpha1.Cluster
		capacity  map[string]int32
		change    func(*Input)
		want      targets
	}{
		"a larger region does not take a scaled up workload": {oneRegion(aggregate, 1), 20, targets{target("eu1", 10)}, all, huge, nil, targets{target("eu1", 20)}},
		"a larger region takes no copies":                    {oneRegion(duplicate, 1), 10, targets{target("eu1", 10)}, all, huge, nil, targets{target("eu1", 10), target("eu2", 10)}},
		"the workload moves if its region is too small":      {oneRegion(aggregate, 1), 90, targets{target("eu1", 10)}, all, huge, nil, targets{target("us1", 90)}},
		"the workload extends to a second region":            {oneRegion(aggregate, 2), 90, targets{target("eu1", 10)}, all, huge, nil, targets{target("eu1", 10), target("us1", 80)}},
		"the workload moves if its region has no capacity": {oneRegion(duplicate, 1), 10, targets{target("eu1", 9)}, all,
			map[string]int32{"eu1": 0, "eu2": 0, "us1": 10, "us2": 10}, nil, targets{target("us1", 10), target("us2", 10)}},
		"the workload moves if its cluster is gone": {oneRegion(aggregate, 1), 10, targets{target("eu1", 10)}, []*clusterv1alpha1.Cluster{us1}, huge, nil, targets{target("us1", 10)}},
		"a changed placement is scheduled by capacity": {oneRegion(duplicate, 1), 30, targets{target("eu1", 10)}, all, huge,
			func(in *Input) { in.AppliedPlacement = "{}" }, targets{target("us1", 30), target("us2", 30)}},
		"a requested reschedule is scheduled by capacity": {oneRegion(duplicate, 1), 30, targets{target("eu1", 10)}, all, huge,
			func(in *Input) { *in = withRescheduleRequest(*in) }, targets{target("us1", 30), target("us2", 30)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := scheduledInput(t, deployment(test.replicas, test.placement, test.current...), test.clusters, test.capacity)
			if test.change != nil {
				test.change(&in)
			}
			checkSchedule(t, in, test.want, "")
		})
	}
}

// However much capacity other clusters and regions get, a workload that fits into its clusters
// leaves none of them.
func TestCapacityElsewhereMovesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		if !isDuplicated(in.Spec.Placement) && !DividesByCapacity(in.Spec.Placement.ReplicaScheduling) {
			return
		}
		in.Spec.Clusters, in.Spec.RescheduleTriggeredAt = nil, nil
		first, err := Schedule(in)
		if err != nil {
			return
		}
		in.Spec.Clusters = first.Clusters
		in.AppliedPlacement, err = AppliedPlacement(in.Spec.Placement)
		if err != nil {
			t.Fatal(err)
		}
		in.Spec.Replicas += rapid.Int32Range(0, 20).Draw(t, "more replicas")
		capacities := map[string]int32{}
		for _, target := range first.Clusters {
			capacities[target.Name] = in.Spec.Replicas
		}
		for i := range rapid.IntRange(1, 5).Draw(t, "new clusters") {
			name := fmt.Sprintf("n%d", i)
			in.Clusters = append(in.Clusters, member(name, inRegion(rapid.SampledFrom([]string{"eu", "us", "new"}).Draw(t, "new region"))))
			capacities[name] = 1 << 20
		}
		in.EstimateReplicas = fixedEstimates(capacities)
		second, err := Schedule(in)
		if err != nil {
			t.Fatal(err)
		}
		after := replicasByCluster(second.Clusters)
		for _, target := range first.Clusters {
			if after[target.Name] < target.Replicas {
				t.Fatalf("%v became %v", first.Clusters, second.Clusters)
			}
		}
	})
}

func TestSchedulerMayReturnToClusterThatItLeft(t *testing.T) {
	for producer, wantError := range map[string]bool{workv1alpha2.EvictionProducerScheduler: false, workv1alpha2.EvictionProducerTaintManager: true} {
		spec := deployment(2, policyv1alpha1.Placement{})
		spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1", Producer: producer}}
		if _, err := Schedule(newInput(spec, members("m1"), nil)); (err != nil) != wantError {
			t.Errorf("after an eviction by %s: %v", producer, err)
		}
	}
}
