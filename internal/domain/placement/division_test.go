package placement

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const evenUID = "00000000-0000-0000-0000-000000000001"

func TestDivide(t *testing.T) {
	tests := map[string]struct {
		want    int64
		parties []WeightedCluster
		uid     string
		shares  []Share
	}{
		"weights one and two":                           {9, []WeightedCluster{{"a", 1}, {"b", 2}}, "", []Share{{"a", 3}, {"b", 6}}},
		"weights one and three, rounded to the nearest": {9, []WeightedCluster{{"a", 1}, {"b", 3}}, "", []Share{{"a", 2}, {"b", 7}}},
		"a tie goes to the first name without UID":      {5, []WeightedCluster{{"a", 1}, {"b", 1}}, "", []Share{{"a", 3}, {"b", 2}}},
		"a tie goes to the first name for an even UID":  {5, []WeightedCluster{{"a", 1}, {"b", 1}}, evenUID, []Share{{"a", 3}, {"b", 2}}},
		"a tie goes to the last name for an odd UID":    {5, []WeightedCluster{{"a", 1}, {"b", 1}}, oddUID, []Share{{"a", 2}, {"b", 3}}},
		"weights two, one and one":                      {7, []WeightedCluster{{"a", 2}, {"b", 1}, {"c", 1}}, "", []Share{{"a", 3}, {"b", 2}, {"c", 2}}},
		"a tie goes to the one with fewer seats":        {2, []WeightedCluster{{"a", 3}, {"b", 1}}, "", []Share{{"a", 1}, {"b", 1}}},
		"weights eight and six":                         {10, []WeightedCluster{{"a", 8}, {"b", 6}}, "", []Share{{"a", 6}, {"b", 4}}},
		"the order of the parties does not matter":      {10, []WeightedCluster{{"b", 6}, {"a", 8}}, "", []Share{{"a", 6}, {"b", 4}}},
		"weight 0 beside other weights gets nothing":    {3, []WeightedCluster{{"a", 0}, {"b", 1}}, "", []Share{{"a", 0}, {"b", 3}}},
		"all weights 0: equal shares":                   {4, []WeightedCluster{{"a", 0}, {"b", 0}, {"c", 0}}, "", []Share{{"a", 2}, {"b", 1}, {"c", 1}}},
		"all weights 0, odd UID: ties to the last name": {4, []WeightedCluster{{"a", 0}, {"b", 0}, {"c", 0}}, oddUID, []Share{{"a", 1}, {"b", 1}, {"c", 2}}},
		"negative weight counts as none":                {2, []WeightedCluster{{"a", -5}, {"b", 1}}, "", []Share{{"a", 0}, {"b", 2}}},
		"nothing to divide":                             {0, []WeightedCluster{{"a", 1}}, "", []Share{{"a", 0}}},
		"a negative want counts as 0":                   {-3, []WeightedCluster{{"a", 1}}, "", []Share{{"a", 0}}},
		"no clusters to divide over":                    {3, nil, "", nil},
		"weights that overflow a sum of integers": {4, []WeightedCluster{{"a", math.MaxInt64}, {"b", math.MaxInt64}}, "",
			[]Share{{"a", 2}, {"b", 2}}},
		"job completions with replicas one, one, two": {10, []WeightedCluster{{"a", 1}, {"b", 1}, {"c", 2}}, "",
			[]Share{{"a", 3}, {"b", 2}, {"c", 5}}},
		"job completions, ties to the last name": {10, []WeightedCluster{{"a", 1}, {"b", 1}, {"c", 2}}, oddUID,
			[]Share{{"a", 2}, {"b", 3}, {"c", 5}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.shares, Divide(test.want, test.parties, test.uid)); diff != "" {
				t.Errorf("shares differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTieOrderByUID(t *testing.T) {
	tests := map[string]bool{
		"":                                     false,
		"00000000-0000-0000-0000-000000000000": true,
		"00000000-0000-0000-0000-000000000001": false,
		"00000000-0000-0000-0000-000000000002": true,
		"00000000-0000-0000-0000-000000000003": false,
	}
	for uid, want := range tests {
		if got := breaksTiesDescending(uid); got != want {
			t.Errorf("descends(%q) = %v, want %v", uid, got, want)
		}
	}
}

// seatBySeat implements the definition of the method. It assigns one seat in each round.
func seatBySeat(want int64, parties []WeightedCluster, uid string) map[string]int64 {
	seats := make(map[string]int64, len(parties))
	for _, party := range parties {
		seats[party.Name] = 0
	}
	offer := func(p WeightedCluster) float64 {
		return float64(max(p.Weight, 0)) / float64(2*seats[p.Name]+1)
	}
	for ; want > 0; want-- {
		best := parties[0]
		for _, party := range parties[1:] {
			switch {
			case offer(party) != offer(best):
				if offer(party) > offer(best) {
					best = party
				}
			case seats[party.Name] != seats[best.Name]:
				if seats[party.Name] < seats[best.Name] {
					best = party
				}
			case (party.Name < best.Name) != breaksTiesDescending(uid):
				best = party
			}
		}
		seats[best.Name]++
	}
	return seats
}

func weightedClusters(maxWeight int64) *rapid.Generator[[]WeightedCluster] {
	return rapid.Custom(func(t *rapid.T) []WeightedCluster {
		weights := rapid.SliceOfN(rapid.Int64Range(0, maxWeight), 1, 12).Draw(t, "weights")
		parties := make([]WeightedCluster, len(weights))
		for i, weight := range weights {
			parties[i] = WeightedCluster{Name: fmt.Sprintf("m%d", i), Weight: weight}
		}
		return parties
	})
}

func replicasByName(shares []Share) map[string]int64 {
	out := make(map[string]int64, len(shares))
	for _, share := range shares {
		out[share.Name] = share.Replicas
	}
	return out
}

func totalReplicas(shares []Share) int64 {
	sum := int64(0)
	for _, share := range shares {
		sum += share.Replicas
	}
	return sum
}

func TestDivideEqualsSeatBySeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Small weights cause equal quotients. Large weights cause rounding.
		parties := weightedClusters(rapid.SampledFrom([]int64{1, 5, 1000, math.MaxInt64}).Draw(t, "max")).Draw(t, "parties")
		want := rapid.Int64Range(0, 600).Draw(t, "want")
		uid := rapid.SampledFrom([]string{"", evenUID, oddUID}).Draw(t, "uid")
		if diff := cmp.Diff(seatBySeat(want, parties, uid), replicasByName(Divide(want, parties, uid))); diff != "" {
			t.Fatalf("Divide(%d, %v) differs from the definition (-want +got):\n%s", want, parties, diff)
		}
	})
}

func TestDivideIsMonotoneAndComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parties := weightedClusters(1<<40).Draw(t, "parties")
		want := rapid.Int64Range(0, math.MaxInt64-1).Draw(t, "want")
		less, more := Divide(want, parties, ""), Divide(want+1, parties, "")
		if got := totalReplicas(less); got != want {
			t.Fatalf("shares add up to %d, want %d", got, want)
		}
		if want > 1<<50 {
			return // for larger numbers, whole groups of seats have equal quotients
		}
		for i := range less {
			if more[i].Replicas < less[i].Replicas {
				t.Fatalf("%s loses when want grows by one: %v, then %v", less[i].Name, less, more)
			}
		}
	})
}

func TestDivideNeverExceedsWeightThatCanHoldAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parties := weightedClusters(500).Draw(t, "parties")
		sum := int64(0)
		for _, party := range parties {
			sum += party.Weight
		}
		for i, share := range Divide(rapid.Int64Range(0, sum).Draw(t, "want"), parties, "") {
			if share.Replicas > parties[indexOf(parties, share.Name)].Weight {
				t.Fatalf("share %d of %v exceeds its weight in %v", i, share, parties)
			}
		}
	})
}

func indexOf(parties []WeightedCluster, name string) int {
	for i := range parties {
		if parties[i].Name == name {
			return i
		}
	}
	return -1
}

func FuzzDivide(f *testing.F) {
	f.Add(int64(9), int64(1), int64(2), int64(0), "")
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(1), int64(-1), oddUID)
	f.Add(int64(100000), int64(7), int64(7), int64(7), evenUID)
	f.Fuzz(func(t *testing.T, want, a, b, c int64, uid string) {
		parties := []WeightedCluster{{"a", a}, {"b", b}, {"c", c}}
		shares := Divide(want, parties, uid)
		if got := totalReplicas(shares); got != max(want, 0) {
			t.Fatalf("Divide(%d, %v) adds up to %d", want, parties, got)
		}
		for _, share := range shares {
			if share.Replicas < 0 {
				t.Fatalf("Divide(%d, %v) gives %v", want, parties, share)
			}
		}
		if want > 0 && want <= 2000 {
			if diff := cmp.Diff(seatBySeat(want, parties, uid), replicasByName(shares)); diff != "" {
				t.Fatalf("Divide(%d, %v) differs from the definition (-want +got):\n%s", want, parties, diff)
			}
		}
	})
}

func BenchmarkDivide100000Over1000(b *testing.B) {
	parties := make([]WeightedCluster, 1000)
	for i := range parties {
		parties[i] = WeightedCluster{Name: fmt.Sprintf("member-%04d", i), Weight: int64(i*7919%1009 + 1)}
	}
	b.ReportAllocs()
	for b.Loop() {
		Divide(100000, parties, oddUID)
	}
}
