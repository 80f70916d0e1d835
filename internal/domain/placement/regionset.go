package placement

import (
	"cmp"
	"slices"
)

// The number of region sets grows exponentially with the number of regions, so maxSearchSteps limits
// the search. It is high enough to find all sets of a dozen regions. maxCapacityAttempts limits the
// number of sets for which clusters are selected.
const (
	maxSearchSteps      = 1 << 14
	maxCapacityAttempts = 64
)

// regionBounds holds the limits that a region set must satisfy.
type regionBounds struct {
	minRegions, maxRegions int
	minClusters            int
}

func (r regionBounds) satisfiedBy(s *regionSet) bool {
	return len(s.regions) >= r.minRegions && len(s.regions) <= r.maxRegions && s.clusters >= r.minClusters
}

// regionSet is a set of regions, best first, with the sums of their values.
type regionSet struct {
	regions   []*region
	score     int64
	clusters  int
	available int64
	used      int // number of regions in use
}

func newRegionSet(regions []*region) regionSet {
	set := regionSet{regions: slices.Clone(regions)}
	for _, region := range regions {
		set.score = addSaturated(set.score, region.score)
		set.clusters += len(region.clusters)
		set.available = addSaturated(set.available, region.available)
		if region.isUsed {
			set.used++
		}
	}
	slices.SortFunc(set.regions, compareRegions)
	return set
}

// usedRegionSets returns the sets that satisfy the bounds and consist of all regions in use and at most
// one more region: first the regions in use alone, then with one more region, best first. It returns
// nil if no region is in use.
func usedRegionSets(regions []region, bounds regionBounds) []regionSet {
	var used, others []*region
	for i := range regions {
		if regions[i].isUsed {
			used = append(used, &regions[i])
		} else {
			others = append(others, &regions[i])
		}
	}
	if len(used) == 0 {
		return nil
	}
	slices.SortFunc(others, compareRegions)
	sets := []regionSet{newRegionSet(used)}
	for _, other := range others {
		sets = append(sets, newRegionSet(append(slices.Clone(used), other)))
	}
	return slices.DeleteFunc(sets, func(set regionSet) bool { return !bounds.satisfiedBy(&set) })
}

// findRegionSets returns region sets that satisfy the bounds. The search adds regions to a set, small
// regions first, until the set satisfies the bounds. If the search exceeds maxSearchSteps,
// findRegionSets adds two more sets: the best regions and the largest regions. The latter satisfies
// the bounds if any set does.
func findRegionSets(regions []region, bounds regionBounds) []regionSet {
	s := regionSearch{bounds: bounds, remainingSteps: maxSearchSteps}
	for i := range regions {
		s.regions = append(s.regions, &regions[i])
	}
	slices.SortFunc(s.regions, func(a, b *region) int {
		return cmp.Or(cmp.Compare(len(a.clusters), len(b.clusters)), compareRegions(a, b))
	})
	s.walk(0, nil, 0)
	if s.remainingSteps > 0 {
		return s.foundSets
	}
	s.addShortestPrefix(compareRegions)
	s.addShortestPrefix(func(a, b *region) int {
		return cmp.Or(cmp.Compare(len(b.clusters), len(a.clusters)), compareRegions(a, b))
	})
	return s.foundSets
}

// regionSearch finds sets of regions by a depth-first search.
type regionSearch struct {
	regions        []*region // fewest clusters first
	bounds         regionBounds
	remainingSteps int // of maxSearchSteps
	foundSets      []regionSet
}

func (r *regionSearch) walk(from int, chosen []*region, clusters int) {
	if len(chosen) >= r.bounds.minRegions && clusters >= r.bounds.minClusters {
		r.foundSets = append(r.foundSets, newRegionSet(chosen))
		return
	}
	for next := from; next < len(r.regions) && r.remainingSteps > 0; next++ {
		r.remainingSteps--
		clustersWithNext := clusters + len(r.regions[next].clusters)
		if r.canComplete(next+1, len(chosen)+1, clustersWithNext) {
			r.walk(next+1, append(chosen, r.regions[next]), clustersWithNext)
		}
	}
}

// canComplete reports whether a set that already has the given numbers of regions and clusters can
// still satisfy the bounds by adding elements of r.regions[from:]. r.regions is sorted by ascending
// size.
func (r *regionSearch) canComplete(from, regions, clusters int) bool {
	more := min(r.bounds.maxRegions-regions, len(r.regions)-from)
	if more < 0 || regions+more < r.bounds.minRegions {
		return false
	}
	for i := len(r.regions) - more; i < len(r.regions) && clusters < r.bounds.minClusters; i++ {
		clusters += len(r.regions[i].clusters)
	}
	return clusters >= r.bounds.minClusters
}

// addShortestPrefix adds the shortest prefix of the regions in the given order that satisfies
// the bounds, if there is one.
func (r *regionSearch) addShortestPrefix(order func(a, b *region) int) {
	sorted := slices.SortedFunc(slices.Values(r.regions), order)
	for count := r.bounds.minRegions; count <= r.bounds.maxRegions; count++ {
		set := newRegionSet(sorted[:count])
		if r.bounds.satisfiedBy(&set) {
			r.foundSets = append(r.foundSets, set)
			return
		}
	}
}

// rankRegionSets sorts the sets by the number of regions in use, then by score, and then by the number
// of clusters. Because fewer regions are preferred, it then moves a smaller set to the front if its
// regions are a prefix of the best set and contain equally many regions in use.
func rankRegionSets(sets []regionSet) []regionSet {
	slices.SortStableFunc(sets, func(a, b regionSet) int {
		return cmp.Or(cmp.Compare(b.used, a.used), cmp.Compare(b.score, a.score), cmp.Compare(b.clusters, a.clusters))
	})
	winner := 0
	for i := range sets {
		if sets[i].used == sets[winner].used && isProperPrefix(sets[i].regions, sets[winner].regions) {
			winner = i
		}
	}
	if winner > 0 {
		best := sets[winner]
		sets = slices.Insert(slices.Delete(sets, winner, winner+1), 0, best)
	}
	return sets
}

// isProperPrefix reports whether part is a shorter prefix of all.
func isProperPrefix(part, all []*region) bool {
	return len(part) < len(all) && slices.Equal(part, all[:len(part)])
}
