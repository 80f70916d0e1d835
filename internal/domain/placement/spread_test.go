package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// ordered numbers candidates in the order given.
func ordered(candidates ...candidate) []candidate {
	for i := range candidates {
		candidates[i].order = i
	}
	return candidates
}

func names(candidates []candidate) []string {
	var out []string
	for i := range candidates {
		out = append(out, candidates[i].name)
	}
	return out
}

func spreadTask(replicas int32, strategy *policyv1alpha1.ReplicaSchedulingStrategy, constraints ...policyv1alpha1.SpreadConstraint) *task {
	return newTask(input(deployment(replicas, policyv1alpha1.Placement{
		SpreadConstraints: constraints, ReplicaScheduling: strategy,
	}), nil, nil))
}

func TestSelectByCluster(t *testing.T) {
	three := func() []candidate {
		return ordered(
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
		"the roomiest of the rest replaces the last one": {80, aggregate, 1, 2, three(), []string{"m1", "m3"}, ""},
		"no exchange where the room is enough":           {70, aggregate, 1, 2, three(), []string{"m1", "m2"}, ""},
		"all clusters together have too little room":     {131, aggregate, 1, 3, three(), nil, "no enough resource when selecting 3 clusters: 131 replicas wanted, room for 130 (m1 40, m2 30, m3 60)"},
		"the allowed number of clusters has too little":  {101, aggregate, 1, 2, three(), nil, "no enough resource when selecting 2 clusters: 101 replicas wanted, room for 100 (m1 40, m3 60)"},
		"copies do not share room":                       {80, duplicate, 1, 2, three(), []string{"m1", "m2"}, ""},
		"no strategy is like copies":                     {80, nil, 1, 2, three(), []string{"m1", "m2"}, ""},
		"fewer clusters than wanted at least":            {10, aggregate, 4, 4, three(), nil, "the number of feasible clusters is less than spreadConstraint.MinGroups: 4 clusters wanted, 3 feasible (m1, m2, m3)"},
		"fewer clusters than allowed":                    {10, aggregate, 1, 9, three(), []string{"m1", "m2", "m3"}, ""},
		"no largest number means no limit":               {10, aggregate, 1, 0, three(), []string{"m1", "m2", "m3"}, ""},
		"the first of equally roomy ones comes in":       {9, dynamicWeight, 1, 1, ordered(candidate{name: "a", available: 5}, candidate{name: "b", available: 9}, candidate{name: "c", available: 9}), []string{"b"}, ""},
		"an equally roomy one does not come in":          {9, aggregate, 1, 1, ordered(candidate{name: "a", available: 5}, candidate{name: "b", available: 5}), nil, "no enough resource when selecting 1 clusters: 9 replicas wanted, room for 5 (a 5)"},
		"a displaced one may come in for an earlier one": {17, aggregate, 1, 2, ordered(candidate{name: "a", available: 1}, candidate{name: "b", available: 8}, candidate{name: "c", available: 9}), []string{"b", "c"}, ""},
		"nothing to place needs no room":                 {0, aggregate, 1, 1, ordered(candidate{name: "a"}), []string{"a"}, ""},
		"room beyond 32 bits does not overflow":          {2, aggregate, 2, 2, ordered(candidate{name: "a", available: 1 << 62}, candidate{name: "b", available: 1 << 62}, candidate{name: "c", available: 1 << 62}), []string{"a", "b"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			task := spreadTask(test.replicas, test.strategy, spread("cluster", test.least, test.most))
			got, err := task.selected(test.candidates)
			if errorText(err) != test.wantError {
				t.Errorf("error %v, want %q", err, test.wantError)
			}
			if diff := cmp.Diff(test.want, names(got)); diff != "" {
				t.Errorf("selected clusters differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhichStrategiesHonourSpreadConstraints(t *testing.T) {
	both := staticWeight(weight(1, "a"))
	both.WeightPreference.DynamicWeight = policyv1alpha1.DynamicWeightByAvailableReplicas
	tests := map[string]struct {
		strategy    *policyv1alpha1.ReplicaSchedulingStrategy
		constraints []policyv1alpha1.SpreadConstraint
		ignored     bool
	}{
		"no constraints":           {aggregate, nil, true},
		"no strategy":              {nil, []policyv1alpha1.SpreadConstraint{spread("cluster", 1, 1)}, false},
		"duplicated":               {duplicate, []policyv1alpha1.SpreadConstraint{spread("cluster", 1, 1)}, false},
		"aggregated":               {aggregate, []policyv1alpha1.SpreadConstraint{spread("cluster", 1, 1)}, false},
		"dynamic weight":           {dynamicWeight, []policyv1alpha1.SpreadConstraint{spread("cluster", 1, 1)}, false},
		"weights not given":        {evenly, []policyv1alpha1.SpreadConstraint{spread("cluster", 1, 1)}, true},
		"static weights":           {staticWeight(weight(1, "a")), []policyv1alpha1.SpreadConstraint{spread("cluster", 1, 1)}, true},
		"an empty list of weights": {staticWeight(), []policyv1alpha1.SpreadConstraint{spread("cluster", 1, 1)}, false},
		"both static and dynamic":  {both, []policyv1alpha1.SpreadConstraint{spread("cluster", 1, 1)}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := spreadTask(1, test.strategy, test.constraints...).ignoresSpread(); got != test.ignored {
				t.Errorf("ignoresSpread = %v, want %v", got, test.ignored)
			}
		})
	}
}

func TestOtherSpreadConstraintsAloneAreRefused(t *testing.T) {
	for _, field := range []policyv1alpha1.SpreadFieldValue{"zone", "provider"} {
		_, err := spreadTask(1, nil, spread(field, 1, 1)).selected(ordered(candidate{name: "a"}))
		if got, want := errorText(err), "just support cluster and region spread constraint"; got != want {
			t.Errorf("spread by %s: error %q, want %q", field, got, want)
		}
	}
}

func TestRegionScore(t *testing.T) {
	of := func(score int64, available ...int64) []candidate {
		var out []candidate
		for _, a := range available {
			out = append(out, candidate{score: score, available: a})
		}
		return out
	}
	divided := spreadTask(100, aggregate, spread("region", 2, 2), spread("cluster", 2, 5))
	copied := spreadTask(50, duplicate, spread("region", 2, 2), spread("cluster", 2, 5))
	tests := map[string]struct {
		task     *task
		clusters []candidate
		want     int64
	}{
		"divided, less room than the share":     {divided, of(100, 10, 10, 10, 10, 5), 45100},
		"divided, more room than the share":     {divided, of(0, 40, 30, 10, 10), 50000},
		"divided, averages over those taken":    {divided, append(of(100, 60), of(0, 60, 60)...), 50050},
		"divided, takes the least number first": {divided, append(of(100, 60), of(0, 1)...), 50050},
		"duplicated, two of five fit":           {copied, of(100, 60, 70, 40, 30, 10), 2100},
		"duplicated, all fit":                   {copied, of(0, 60, 60, 60, 60), 4000},
		"duplicated, none fits":                 {copied, of(100, 10, 10), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.task.regionScore(test.clusters); got != test.want {
				t.Errorf("score %d, want %d", got, test.want)
			}
		})
	}
}

// regionsOf builds regions of that many clusters and that score.
func regionsOf(rows ...region) []region {
	for i := range rows {
		for j := range rows[i].clusters {
			rows[i].clusters[j] = candidate{name: fmt.Sprintf("%s%d", rows[i].name, j), region: rows[i].name}
		}
	}
	return rows
}

func sized(name string, clusters int, score int64) region {
	return region{name: name, clusters: make([]candidate, clusters), score: score}
}

func winnerOf(sets []regionSet) string {
	if len(sets) == 0 {
		return ""
	}
	var out []string
	for _, region := range sets[0].regions {
		out = append(out, region.name)
	}
	return strings.Join(out, ",")
}

func TestChooseRegions(t *testing.T) {
	four := regionsOf(sized("eu", 2, 900), sized("us", 3, 700), sized("ap", 4, 500), sized("sa", 1, 400))
	two := regionsOf(sized("eu", 1, 500), sized("us", 1, 400))
	tests := map[string]struct {
		regions []region
		within  bounds
		want    string
	}{
		"a beginning of the best set wins over it":     {four, bounds{1, 3, 4}, "eu,us"},
		"the best of those with enough clusters":       {four, bounds{2, 2, 6}, "eu,ap"},
		"more regions are allowed than needed":         {four, bounds{1, 4, 5}, "eu,us"},
		"too few clusters":                             {two, bounds{2, 2, 3}, ""},
		"all regions are needed":                       {two, bounds{2, 2, 2}, "eu,us"},
		"one region does":                              {four, bounds{1, 1, 1}, "eu"},
		"the largest number is less than the smallest": {four, bounds{2, 1, 1}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := winnerOf(rankSets(regionSets(test.regions, test.within))); got != test.want {
				t.Errorf("chose %q, want %q", got, test.want)
			}
		})
	}
}

func TestManyRegionsAreSearchedInBoundedTime(t *testing.T) {
	var rows []region
	for i := range 200 {
		rows = append(rows, sized(fmt.Sprintf("r%03d", i), 1+i%7, int64(i*37%101)))
	}
	regions := regionsOf(rows...)
	sets := rankSets(regionSets(regions, bounds{least: 10, most: 40, clusters: 150}))
	if len(sets) == 0 {
		t.Fatal("no set of regions found though there are many")
	}
	if len(sets) > maxSteps {
		t.Errorf("%d sets looked at, more than %d", len(sets), maxSteps)
	}
	// 40 regions have 280 clusters at most.
	if sets := regionSets(regions, bounds{least: 10, most: 40, clusters: 281}); len(sets) != 0 {
		t.Errorf("%d impossible sets found", len(sets))
	}
}

func TestRegionSetsSatisfyTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []region
		count := rapid.IntRange(1, 30).Draw(t, "regions")
		for i := range count {
			rows = append(rows, sized(fmt.Sprintf("r%d", i), rapid.IntRange(1, 5).Draw(t, "clusters"), rapid.Int64Range(0, 5000).Draw(t, "score")))
		}
		least := rapid.IntRange(1, count).Draw(t, "least")
		within := bounds{least, rapid.IntRange(least, count).Draw(t, "most"), rapid.IntRange(0, 40).Draw(t, "least clusters")}
		regions, largest := regionsOf(rows...), 0
		sizes := make([]int, 6)
		for _, region := range regions {
			sizes[len(region.clusters)]++
		}
		for size, left := 5, within.most; size > 0; size-- {
			taken := min(left, sizes[size])
			largest, left = largest+taken*size, left-taken
		}
		sets := rankSets(regionSets(regions, within))
		if possible := largest >= within.clusters; possible != (len(sets) > 0) {
			t.Fatalf("possible is %v, but %d sets were found", possible, len(sets))
		}
		for i := range sets {
			if !within.satisfiedBy(&sets[i]) {
				t.Fatalf("set %+v is out of bounds %+v", sets[i], within)
			}
		}
	})
}

func TestSelectByRegion(t *testing.T) {
	at := func(name, region string, score, available int64) candidate {
		return candidate{name: name, region: region, score: score, available: available}
	}
	regional := func(least, most, leastClusters, mostClusters int) []policyv1alpha1.SpreadConstraint {
		return []policyv1alpha1.SpreadConstraint{spread("region", least, most), spread("cluster", leastClusters, mostClusters)}
	}
	six := func() []candidate {
		return ordered(
			at("e1", "eu", 100, 50), at("e2", "eu", 100, 40), at("u1", "us", 100, 30),
			at("e3", "eu", 0, 90), at("u2", "us", 0, 80), at("a1", "ap", 0, 70),
		)
	}
	tests := map[string]struct {
		replicas    int32
		strategy    *policyv1alpha1.ReplicaSchedulingStrategy
		constraints []policyv1alpha1.SpreadConstraint
		candidates  []candidate
		want        []string
		wantError   string
	}{
		"one of each region, then the most preferred": {10, duplicate, regional(2, 2, 2, 3), six(), []string{"e1", "e2", "u1"}, ""},
		"the smallest number of regions is not there": {10, duplicate, regional(4, 4, 4, 4), six(), nil, "the number of feasible region is less than spreadConstraint.MinGroups: 4 regions wanted, 3 feasible (ap, eu, us)"},
		"too few clusters in all regions":             {10, duplicate, regional(1, 3, 7, 9), six(), nil, "the number of clusters is less than the cluster spreadConstraint.MinGroups: 7 clusters wanted, 6 feasible (a1, e1, e2, e3, u1, u2)"},
		"no limit for regions and clusters":           {10, duplicate, regional(3, 0, 3, 0), six(), []string{"e1", "e2", "u1", "e3", "u2", "a1"}, ""},
		"more regions than clusters are allowed":      {10, duplicate, regional(3, 3, 1, 2), six(), []string{"e1", "u1", "a1"}, ""},
		"clusters are exchanged for more room":        {130, aggregate, regional(2, 2, 2, 2), six(), []string{"e1", "u2"}, ""},
		"both are exchanged where that is needed":     {170, aggregate, regional(2, 2, 2, 2), six(), []string{"e3", "u2"}, ""},
		"a region keeps its last cluster":             {175, aggregate, regional(2, 2, 2, 2), six(), nil, "no enough resource when selecting 2 clusters: 175 replicas wanted, room for 80 (e1 50, u1 30)"},
		"a less preferred set of regions has room": {100, aggregate, regional(1, 1, 1, 1), ordered(
			at("e1", "eu", 100, 60), at("e2", "eu", 100, 60), at("u1", "us", 0, 100)), []string{"u1"}, ""},
		"clusters without region are left out": {10, duplicate, regional(1, 1, 1, 3), ordered(
			at("x", "", 100, 50), at("e1", "eu", 0, 50)), []string{"e1"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := spreadTask(test.replicas, test.strategy, test.constraints...).selected(test.candidates)
			if errorText(err) != test.wantError {
				t.Errorf("error %v, want %q", err, test.wantError)
			}
			if diff := cmp.Diff(test.want, names(got)); diff != "" {
				t.Errorf("selected clusters differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCandidateOrder(t *testing.T) {
	spec := deployment(9, policyv1alpha1.Placement{
		ReplicaScheduling: aggregate,
	}, target("d", 1))
	task := newTask(input(spec, nil, map[string]int32{"a": 5, "b": 5, "c": 7, "d": 2, "unlimited": 2147483647, "silent": -1}))
	task.enter(nil)
	all := members("c", "b", "a", "d", "unlimited", "silent", "unknown")
	got := task.candidates(all, task.scores(all))
	// Present first, then room; whoever is unknown has room for all 9.
	want := []string{"d", "silent", "unknown", "unlimited", "c", "a", "b"}
	if diff := cmp.Diff(want, names(got)); diff != "" {
		t.Errorf("order differs (-want +got):\n%s", diff)
	}
	if d := got[0]; d.allocatable != 2 || d.available != 3 || d.score != localityScore {
		t.Errorf("the present cluster is %+v, want allocatable 2, available 3, score 100", d)
	}
}

func TestEstimatesAreAskedOnlyWhereTheyMatter(t *testing.T) {
	constrained := func(strategy *policyv1alpha1.ReplicaSchedulingStrategy) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{ReplicaScheduling: strategy, SpreadConstraints: []policyv1alpha1.SpreadConstraint{spread("cluster", 1, 1)}}
	}
	tests := map[string]struct {
		spec *workv1alpha2.ResourceBindingSpec
		want bool
	}{
		"divided by room":                  {deployment(3, policyv1alpha1.Placement{ReplicaScheduling: dynamicWeight}), true},
		"aggregated":                       {deployment(3, policyv1alpha1.Placement{ReplicaScheduling: aggregate}), true},
		"copies to all":                    {deployment(3, policyv1alpha1.Placement{}), false},
		"fixed weights":                    {deployment(3, constrained(evenly)), false},
		"copies to the best":               {deployment(3, constrained(duplicate)), true},
		"no replicas, whatever the spread": {deployment(0, constrained(aggregate)), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			asked := false
			in := input(test.spec, members("a"), nil)
			in.Estimate = func([]*clusterv1alpha1.Cluster) map[string]int32 {
				asked = true
				return nil
			}
			if _, err := Schedule(in); err != nil {
				t.Fatal(err)
			}
			if asked != test.want {
				t.Errorf("asked = %v, want %v", asked, test.want)
			}
		})
	}
}
