package placement

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// drawInput draws an arbitrary binding and arbitrary clusters.
func drawInput(t *rapid.T) Input {
	strategies := []*policyv1alpha1.ReplicaSchedulingStrategy{nil, duplicate, aggregate, dynamicWeight, evenly}
	placement := policyv1alpha1.Placement{ReplicaScheduling: rapid.SampledFrom(strategies).Draw(t, "strategy")}
	if rapid.Bool().Draw(t, "constrained") {
		least := rapid.IntRange(0, 3).Draw(t, "least")
		placement.SpreadConstraints = append(placement.SpreadConstraints, spreadBy("cluster", least, rapid.SampledFrom([]int{0, 3, 5}).Draw(t, "most")))
		if rapid.Bool().Draw(t, "regional") {
			placement.SpreadConstraints = append(placement.SpreadConstraints, spreadBy("region", 1, 2))
		}
	}
	spec := deployment(rapid.Int32Range(0, 60).Draw(t, "replicas"), placement)
	in := newInput(spec, nil, nil)
	estimates := map[string]int32{}
	for i := range rapid.IntRange(0, 8).Draw(t, "clusters") {
		name := fmt.Sprintf("m%d", i)
		in.Clusters = append(in.Clusters, member(name, inRegion(rapid.SampledFrom([]string{"", "eu", "us", "ap"}).Draw(t, "region"))))
		estimates[name] = rapid.Int32Range(-1, 40).Draw(t, "capacity")
		if rapid.Bool().Draw(t, "present") {
			spec.Clusters = append(spec.Clusters, target(name, rapid.Int32Range(0, 15).Draw(t, "held")))
		}
	}
	in.EstimateReplicas = fixedEstimates(estimates)
	in.Features.EmptyWorkload = rapid.Bool().Draw(t, "empty workload")
	if rapid.Bool().Draw(t, "fresh") {
		in = withRescheduleRequest(in)
	}
	return in
}

func TestDividedReplicasAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		result, err := Schedule(in)
		if err != nil || isDuplicated(in.Spec.Placement) {
			return
		}
		sum, seen := int32(0), map[string]bool{}
		for _, target := range result.Clusters {
			if seen[target.Name] {
				t.Fatalf("%s is a target twice: %v", target.Name, result.Clusters)
			}
			seen[target.Name] = true
			sum += target.Replicas
		}
		if sum != in.Spec.Replicas {
			t.Fatalf("replicas add up to %d, want %d: %v", sum, in.Spec.Replicas, result.Clusters)
		}
	})
}

func TestScheduleIsStableAndModifiesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		before := encodeInput(t, in)
		first, firstErr := Schedule(in)
		if after := encodeInput(t, in); after != before {
			t.Fatalf("the input was modified:\n%s\n%s", before, after)
		}
		second, secondErr := Schedule(in)
		if diff := cmp.Diff(first.Clusters, second.Clusters); diff != "" || errorText(firstErr) != errorText(secondErr) {
			t.Fatalf("the same input gives another result:\n%s\n%v\n%v", diff, firstErr, secondErr)
		}
	})
}

// TestCapacityDivisionIsIdempotent checks that scheduling a result again without a change does not
// move replicas. This is needed because every write of a result increases the generation and
// enqueues the binding again.
func TestCapacityDivisionIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		if !DividesByCapacity(in.Spec.Placement.ReplicaScheduling) || len(in.Spec.Placement.SpreadConstraints) > 0 {
			return
		}
		first, err := Schedule(in)
		if err != nil || len(in.Spec.Clusters) == 0 {
			return
		}
		in.Spec.Clusters = first.Clusters
		in.Status = &workv1alpha2.ResourceBindingStatus{}
		second, err := Schedule(in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(replicasByCluster(first.Clusters), replicasByCluster(second.Clusters)); diff != "" {
			t.Fatalf("a second pass moves replicas:\n%s", diff)
		}
	})
}

func replicasByCluster(list targets) map[string]int32 {
	out := map[string]int32{}
	for _, target := range list {
		out[target.Name] = target.Replicas
	}
	return out
}

func encodeInput(t *rapid.T, in Input) string {
	text, err := json.Marshal([]any{in.Spec, in.Status, in.Clusters})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
