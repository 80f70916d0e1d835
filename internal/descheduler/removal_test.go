package descheduler

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestRemovals(t *testing.T) {
	tests := map[string]struct {
		assigned      int32
		ready         int64
		unschedulable int32
		kept          int32
	}{
		"unschedulable replicas are removed":                      {5, 3, 2, 3},
		"ready replicas stay":                                     {5, 4, 3, 4},
		"all replicas are unschedulable":                          {5, unknownReady, 5, 0},
		"some replicas are unschedulable and the rest is unknown": {5, unknownReady, 2, 3},
		"no replica is ready":                                     {5, 0, 5, 0},
		"no replica is unschedulable":                             {5, 3, 0, 5},
		"the estimator has no number":                             {5, 3, -1, 5},
		"more unschedulable replicas than assigned":               {5, 3, 6, 5},
		"as many replicas as possible":                            {math.MaxInt32, unknownReady, math.MaxInt32, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			removals := removalsFor([]candidate{{"m1", test.assigned, test.ready}}, map[string]int32{"m1": test.unschedulable})
			lowered := lowerTargets([]workv1alpha2.TargetCluster{{Name: "m1", Replicas: test.assigned}}, removals)
			if diff := cmp.Diff([]workv1alpha2.TargetCluster{{Name: "m1", Replicas: test.kept}}, lowered); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			if wantChange := test.kept != test.assigned; wantChange != (len(removals) > 0) {
				t.Errorf("removals %+v", removals)
			}
		})
	}
}

func TestClusterWithoutAnswerKeepsReplicas(t *testing.T) {
	got := removalsFor([]candidate{{"m1", 5, 3}, {"m2", 4, 0}, {"m3", 2, 1}}, map[string]int32{"m1": 2, "m3": 1, "m4": 9})
	if diff := cmp.Diff([]removal{{"m1", 2}, {"m3", 1}}, got); diff != "" {
		t.Errorf("removals (-want +got):\n%s", diff)
	}
}

func TestRemovalMessage(t *testing.T) {
	const want = "Binding has been descheduled, 2 replica(s) in cluster(member1), 1 replica(s) in cluster(member2), 3 total descheduled replica(s)"
	if diff := cmp.Diff(want, removalMessage([]removal{{"member1", 2}, {"member2", 1}})); diff != "" {
		t.Error(diff)
	}
}

func TestTargetsAreOnlyLowered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := newBinding("web")
		bound.Spec.Clusters, bound.Status.AggregatedStatus = nil, nil
		sum, ready, unschedulable := int64(0), map[string]int64{}, map[string]int32{}
		for _, name := range rapid.SliceOfDistinct(rapid.StringMatching(`m[0-9]`), rapid.ID).Draw(t, "clusters") {
			replicas := rapid.Int32Range(0, 20).Draw(t, "assigned")
			bound.Spec.Clusters = append(bound.Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: replicas})
			sum += int64(replicas)
			ready[name] = unknownReady
			if rapid.Bool().Draw(t, "reported") {
				ready[name] = rapid.Int64Range(0, 25).Draw(t, "ready")
				bound.Status.AggregatedStatus = append(bound.Status.AggregatedStatus, newStatus(name, statusWithReady(ready[name])))
			}
			if rapid.Bool().Draw(t, "answered") {
				unschedulable[name] = rapid.Int32Range(-1, 25).Draw(t, "unschedulable")
			}
		}
		bound.Spec.Replicas = int32(sum)
		removals := removalsFor(candidatesOf(bound, newCluster), unschedulable)
		lowered := lowerTargets(bound.Spec.Clusters, removals)
		if len(lowered) != len(bound.Spec.Clusters) {
			t.Fatalf("targets %v became %v", bound.Spec.Clusters, lowered)
		}
		removed := int64(0)
		for i, target := range bound.Spec.Clusters {
			loss := target.Replicas - lowered[i].Replicas
			removed += int64(loss)
			switch {
			case lowered[i].Name != target.Name || loss < 0 || lowered[i].Replicas < 0:
				t.Fatalf("target %v became %v", target, lowered[i])
			case loss > 0 && int64(lowered[i].Replicas) < ready[target.Name]:
				t.Fatalf("target %v with %d ready replicas became %v", target, ready[target.Name], lowered[i])
			case loss > max(unschedulable[target.Name], 0):
				t.Fatalf("target %v with %d unschedulable replicas became %v", target, unschedulable[target.Name], lowered[i])
			}
		}
		if (removed > 0) != (len(removals) > 0) {
			t.Fatalf("%d replicas removed by %v", removed, removals)
		}
	})
}

func statusWithReady(replicas int64) string { return fmt.Sprintf(`{"readyReplicas":%d}`, replicas) }
