package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// withRanks sets the rank of each candidate to its index.
func withRanks(candidates ...candidate) []candidate {
	for i := range candidates {
		candidates[i].rank = int32(i)
	}
	return candidates
}

func candidateNamesOrNil(candidates []candidate) []string {
	var out []string
	for i := range candidates {
		out = append(out, candidates[i].name)
	}
	return out
}

func spreadTask(replicas int32, strategy *policyv1alpha1.ReplicaSchedulingStrategy, constraints ...policyv1alpha1.SpreadConstraint) *task {
	return newTask(newInput(deployment(replicas, policyv1alpha1.Placement{
		SpreadConstraints: constraints, ReplicaScheduling: strategy,
	}), nil, nil))
}

func TestSelectByCluster(t *testing.T) {
	three := func() []candidate {
		return withRanks(
			candidate{name: "m1", score: 60, available: 40},
			candidate{name: "m2", score: 50, available: 30},
			candidate{name: "m3", score: 40, available: 60},
		)
	}
	tests := map[string]struct {
		replicas    int32
		strategy    *policyv1alpha1.ReplicaSchedulingStrategy
		least, most int
		candidates  []candidate
		want        []string
		wantError   string
	}{
		"the last cluster is swapped for more capacity": {80, aggregate, 1, 2, three(), []string{"m1", "m3"}, ""},
		"no swap if the capacity is sufficient":         {70, aggregate, 1, 2, three(), []string{"m1", "m2"}, ""},
		"all clusters together lack capacity":           {131, aggregate, 1, 3, three(), nil, "no enough resource when selecting 3 clusters: 131 replicas wanted, room for 130 (m1 40, m2 30, m3 60)"},
		"the allowed number of clusters lacks capacity": {101, aggregate, 1, 2, three(), nil, "no enough resource when selecting 2 clusters: 101 replicas wanted, room for 100 (m1 40, m3 60)"},
		"duplicated replicas need no common capacity":   {80, duplicate, 1, 2, three(), []string{"m1", "m2"}, ""},
		"no strategy counts as duplicated":              {80, nil, 1, 2, three(), []string{"m1", "m2"}, ""},
		"fewer clusters than minGroups":                 {10, aggregate, 4, 4, three(), nil, "the number of feasible clusters is less than spreadConstraint.MinGroups: 4 clusters wanted, 3 feasible (m1, m2, m3)"},
		"fewer clusters than maxGroups":                 {10, aggregate, 1, 9, three(), []string{"m1", "m2", "m3"}, ""},
		"maxGroups 0 means no limit":                    {10, aggregate, 1, 0, three(), []string{"m1", "m2", "m3"}, ""},
		"of equal capacities the first is swapped in":   {9, dynamicWeight, 1, 1, withRanks(candidate{name: "a", available: 5}, candidate{name: "b", available: 9}, candidate{name: "c", available: 9}), []string{"b"}, ""},
		"an equal capacity is not swapped in":           {9, aggregate, 1, 1, withRanks(candidate{name: "a", available: 5}, candidate{name: "b", available: 5}), nil, "no enough resource when selecting 1 clusters: 9 replicas wanted, room for 5 (a 5)"},
		"a swapped cluster may replace an earlier one":  {17, aggregate, 1, 2, withRanks(candidate{name: "a", available: 1}, candidate{name: "b", available: 8}, candidate{name: "c", available: 9}), []string{"b", "c"}, ""},
		"0 replicas need no capacity":                   {0, aggregate, 1, 1, withRanks(candidate{name: "a"}), []string{"a"}, ""},
		"capacity beyond 32 bits does not overflow":     {2, aggregate, 2, 2, withRanks(candidate{name: "a", available: 1 << 62}, candidate{name: "b", available: 1 << 62}, candidate{name: "c", available: 1 << 62}), []string{"a", "b"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			task := spreadTask(test.replicas, test.strategy, spreadBy("cluster", test.least, test.most))
			got, err := task.selectCandidates(test.candidates)
			if errorText(err) != test.wantError {
				t.Errorf("error %v, want %q", err, test.wantError)
			}
			if diff := cmp.Diff(test.want, candidateNamesOrNil(got)); diff != "" {
				t.Errorf("selected clusters differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStrategiesThatIgnoreSpreadConstraints(t *testing.T) {
	both := staticWeight(clusterWeight(1, "a"))
	both.WeightPreference.DynamicWeight = policyv1alpha1.DynamicWeightByAvailableReplicas
	tests := map[string]struct {
		strategy    *policyv1alpha1.ReplicaSchedulingStrategy
		constraints []policyv1alpha1.SpreadConstraint
		ignored     bool
	}{
		"no constraints":           {aggregate, nil, true},
		"no strategy":              {nil, []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 1, 1)}, false},
		"duplicated":               {duplicate, []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 1, 1)}, false},
		"aggregated":               {aggregate, []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 1, 1)}, false},
		"dynamic weight":           {dynamicWeight, []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 1, 1)}, false},
		"weights not given":        {evenly, []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 1, 1)}, true},
		"static weights":           {staticWeight(clusterWeight(1, "a")), []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 1, 1)}, true},
		"an empty list of weights": {staticWeight(), []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 1, 1)}, false},
		"both static and dynamic":  {both, []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 1, 1)}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := spreadTask(1, test.strategy, test.constraints...).ignoresSpreadConstraints(); got != test.ignored {
				t.Errorf("ignoresSpread = %v, want %v", got, test.ignored)
			}
		})
	}
}

func TestUnsupportedSpreadConstraintsAreRejected(t *testing.T) {
	for _, field := range []policyv1alpha1.SpreadFieldValue{"zone", "provider"} {
		_, err := spreadTask(1, nil, spreadBy(field, 1, 1)).selectCandidates(withRanks(candidate{name: "a"}))
		if got, want := errorText(err), "just support cluster and region spread constraint"; got != want {
			t.Errorf("spread by %s: error %q, want %q", field, got, want)
		}
	}
}

func TestCandidateOrder(t *testing.T) {
	spec := deployment(9, policyv1alpha1.Placement{
		ReplicaScheduling: aggregate,
	}, target("d", 1))
	task := newTask(newInput(spec, nil, map[string]int32{"a": 5, "b": 5, "c": 7, "d": 2, "unlimited": 2147483647, "negative": -1}))
	task.useAffinityGroup(nil)
	all := members("c", "b", "a", "d", "unlimited", "negative", "unknown")
	got := task.rankedCandidates(all, task.clusterScores(all))
	// Present targets come first, then the clusters with more capacity. An unknown capacity counts
	// as 9, the number of replicas of the workload.
	want := []string{"d", "negative", "unknown", "unlimited", "c", "a", "b"}
	if diff := cmp.Diff(want, candidateNamesOrNil(got)); diff != "" {
		t.Errorf("order differs (-want +got):\n%s", diff)
	}
	if d := got[0]; d.allocatable != 2 || d.available != 3 || d.score != maxScore {
		t.Errorf("the current cluster is %+v, want allocatable 2, available 3, score 100", d)
	}
}

func TestEstimatesAreRequestedOnlyWhenNeeded(t *testing.T) {
	constrained := func(strategy *policyv1alpha1.ReplicaSchedulingStrategy) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{ReplicaScheduling: strategy, SpreadConstraints: []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 1, 1)}}
	}
	tests := map[string]struct {
		spec *workv1alpha2.ResourceBindingSpec
		want bool
	}{
		"divided by capacity":                 {deployment(3, policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight}), true},
		"aggregated":                          {deployment(3, policyv1alpha1.Placement{ReplicaScheduling: aggregate}), true},
		"duplicated to all":                   {deployment(3, policyv1alpha1.Placement{}), false},
		"fixed weights":                       {deployment(3, constrained(evenly)), false},
		"duplicated to one":                   {deployment(3, constrained(duplicate)), true},
		"no replicas, with spread constraint": {deployment(0, constrained(aggregate)), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			requested := false
			in := newInput(test.spec, members("a"), nil)
			in.EstimateReplicas = func([]*clusterv1alpha1.Cluster) []int32 {
				requested = true
				return nil
			}
			if _, err := Schedule(in); err != nil {
				t.Fatal(err)
			}
			if requested != test.want {
				t.Errorf("asked = %v, want %v", requested, test.want)
			}
		})
	}
}
