package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func TestRegionScore(t *testing.T) {
	of := func(score int64, available ...int64) []candidate {
		var out []candidate
		for _, a := range available {
			out = append(out, candidate{score: score, available: a})
		}
		return out
	}
	divided := spreadTask(100, aggregate, spreadBy("region", 2, 2), spreadBy("cluster", 2, 5))
	copied := spreadTask(50, duplicate, spreadBy("region", 2, 2), spreadBy("cluster", 2, 5))
	tests := map[string]struct {
		task     *task
		clusters []candidate
		want     int64
	}{
		"divided, less capacity than the share":       {divided, of(100, 10, 10, 10, 10, 5), 45100},
		"divided, more capacity than the share":       {divided, of(0, 40, 30, 10, 10), 50000},
		"divided, average over the counted clusters":  {divided, append(of(100, 60), of(0, 60, 60)...), 50050},
		"divided, counts at least minGroups clusters": {divided, append(of(100, 60), of(0, 1)...), 50050},
		"duplicated, two of five fit":                 {copied, of(100, 60, 70, 40, 30, 10), 2100},
		"duplicated, all fit":                         {copied, of(0, 60, 60, 60, 60), 4000},
		"duplicated, none fits":                       {copied, of(100, 10, 10), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.task.regionScore(test.clusters); got != test.want {
				t.Errorf("score %d, want %d", got, test.want)
			}
		})
	}
}

// withCandidates sets the candidates of the regions.
func withCandidates(rows ...region) []region {
	for i := range rows {
		for j := range rows[i].clusters {
			rows[i].clusters[j] = candidate{name: fmt.Sprintf("%s%d", rows[i].name, j), region: rows[i].name}
		}
	}
	return rows
}

func regionOfSize(name string, clusters int, score int64) region {
	return region{name: name, clusters: make([]candidate, clusters), score: score}
}

func winningRegions(sets []regionSet) string {
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
	four := withCandidates(regionOfSize("eu", 2, 900), regionOfSize("us", 3, 700), regionOfSize("ap", 4, 500), regionOfSize("sa", 1, 400))
	two := withCandidates(regionOfSize("eu", 1, 500), regionOfSize("us", 1, 400))
	tests := map[string]struct {
		regions []region
		within  regionBounds
		want    string
	}{
		"a prefix of the best set wins":        {four, regionBounds{1, 3, 4}, "eu,us"},
		"the best set with enough clusters":    {four, regionBounds{2, 2, 6}, "eu,ap"},
		"more regions are allowed than needed": {four, regionBounds{1, 4, 5}, "eu,us"},
		"too few clusters":                     {two, regionBounds{2, 2, 3}, ""},
		"all regions are needed":               {two, regionBounds{2, 2, 2}, "eu,us"},
		"one region is sufficient":             {four, regionBounds{1, 1, 1}, "eu"},
		"the maximum is less than the minimum": {four, regionBounds{2, 1, 1}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := winningRegions(rankRegionSets(findRegionSets(test.regions, test.within))); got != test.want {
				t.Errorf("chose %q, want %q", got, test.want)
			}
		})
	}
}

func TestRegionSearchIsBounded(t *testing.T) {
	var rows []region
	for i := range 200 {
		rows = append(rows, regionOfSize(fmt.Sprintf("r%03d", i), 1+i%7, int64(i*37%101)))
	}
	regions := withCandidates(rows...)
	sets := rankRegionSets(findRegionSets(regions, regionBounds{minRegions: 10, maxRegions: 40, minClusters: 150}))
	if len(sets) == 0 {
		t.Fatal("no set of regions found though there are many")
	}
	if len(sets) > maxSearchSteps {
		t.Errorf("%d sets looked at, more than %d", len(sets), maxSearchSteps)
	}
	// No set satisfies the bounds, because 40 regions have at most 280 clusters.
	if sets := findRegionSets(regions, regionBounds{minRegions: 10, maxRegions: 40, minClusters: 281}); len(sets) != 0 {
		t.Errorf("%d impossible sets found", len(sets))
	}
}

func TestRegionSetsSatisfyTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []region
		count := rapid.IntRange(1, 30).Draw(t, "regions")
		for i := range count {
			rows = append(rows, regionOfSize(fmt.Sprintf("r%d", i), rapid.IntRange(1, 5).Draw(t, "clusters"), rapid.Int64Range(0, 5000).Draw(t, "score")))
		}
		least := rapid.IntRange(1, count).Draw(t, "least")
		within := regionBounds{least, rapid.IntRange(least, count).Draw(t, "most"), rapid.IntRange(0, 40).Draw(t, "least clusters")}
		regions, largest := withCandidates(rows...), 0
		sizes := make([]int, 6)
		for _, region := range regions {
			sizes[len(region.clusters)]++
		}
		for size, left := 5, within.maxRegions; size > 0; size-- {
			taken := min(left, sizes[size])
			largest, left = largest+taken*size, left-taken
		}
		sets := rankRegionSets(findRegionSets(regions, within))
		if possible := largest >= within.minClusters; possible != (len(sets) > 0) {
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
		return []policyv1alpha1.SpreadConstraint{spreadBy("region", least, most), spreadBy("cluster", leastClusters, mostClusters)}
	}
	six := func() []candidate {
		return withRanks(
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
		"fewer regions than minGroups":                {10, duplicate, regional(4, 4, 4, 4), six(), nil, "the number of feasible region is less than spreadConstraint.MinGroups: 4 regions wanted, 3 feasible (ap, eu, us)"},
		"too few clusters in all regions":             {10, duplicate, regional(1, 3, 7, 9), six(), nil, "the number of clusters is less than the cluster spreadConstraint.MinGroups: 7 clusters wanted, 6 feasible (a1, e1, e2, e3, u1, u2)"},
		"no limit for regions and clusters":           {10, duplicate, regional(3, 0, 3, 0), six(), []string{"e1", "e2", "u1", "e3", "u2", "a1"}, ""},
		"more regions than clusters are allowed":      {10, duplicate, regional(3, 3, 1, 2), six(), []string{"e1", "u1", "a1"}, ""},
		"clusters are swapped for more capacity":      {130, aggregate, regional(2, 2, 2, 2), six(), []string{"e1", "u2"}, ""},
		"both clusters are swapped if needed":         {170, aggregate, regional(2, 2, 2, 2), six(), []string{"e3", "u2"}, ""},
		"a region keeps its last cluster":             {175, aggregate, regional(2, 2, 2, 2), six(), nil, "no enough resource when selecting 2 clusters: 175 replicas wanted, room for 80 (e1 50, u1 30)"},
		"a less preferred set of regions has capacity": {100, aggregate, regional(1, 1, 1, 1), withRanks(
			at("e1", "eu", 100, 60), at("e2", "eu", 100, 60), at("u1", "us", 0, 100)), []string{"u1"}, ""},
		"clusters without a region are omitted": {10, duplicate, regional(1, 1, 1, 3), withRanks(
			at("x", "", 100, 50), at("e1", "eu", 0, 50)), []string{"e1"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := spreadTask(test.replicas, test.strategy, test.constraints...).selectCandidates(test.candidates)
			if errorText(err) != test.wantError {
				t.Errorf("error %v, want %q", err, test.wantError)
			}
			if diff := cmp.Diff(test.want, candidateNamesOrNil(got)); diff != "" {
				t.Errorf("selected clusters differ (-want +got):\n%s", diff)
			}
		})
	}
}
