package placement

import (
	"cmp"
	"slices"
)

// The number of sets of regions grows exponentially with the number of regions.
// maxSteps bounds the search for them: enough to look at all sets of a dozen
// regions. maxAttempts bounds how many of them are tried for room.
const (
	maxSteps    = 1 << 14
	maxAttempts = 64
)

// bounds are what a set of regions has to satisfy.
type bounds struct {
	least, most int // number of regions
	clusters    int // least number of clusters
}

func (b bounds) satisfiedBy(s *regionSet) bool {
	return len(s.regions) >= b.least && len(s.regions) <= b.most && s.clusters >= b.clusters
}

// regionSet is a choice of regions, the best first.
type regionSet struct {
	regions  []*region
	score    int64
	clusters int
	room     int64
}

func newRegionSet(regions []*region) regionSet {
	set := regionSet{regions: slices.Clone(regions)}
	for _, region := range regions {
		set.score = addSaturated(set.score, region.score)
		set.clusters += len(region.clusters)
		set.room = addSaturated(set.room, region.room)
	}
	slices.SortFunc(set.regions, byMerit)
	return set
}

// regionSets finds the sets of regions within the bounds from which no region can
// be left out again in the order of the search: small regions first, so that few
// clusters are bound to many regions. A search that is cut off adds the set of the
// best and the set of the largest regions; the latter satisfies the bounds if any
// set does.
func regionSets(regions []region, within bounds) []regionSet {
	s := search{within: within, steps: maxSteps}
	for i := range regions {
		s.regions = append(s.regions, &regions[i])
	}
	slices.SortFunc(s.regions, func(a, b *region) int {
		return cmp.Or(cmp.Compare(len(a.clusters), len(b.clusters)), byMerit(a, b))
	})
	s.walk(0, nil, 0)
	if s.steps > 0 {
		return s.found
	}
	s.take(byMerit)
	s.take(func(a, b *region) int {
		return cmp.Or(cmp.Compare(len(b.clusters), len(a.clusters)), byMerit(a, b))
	})
	return s.found
}

// search enumerates sets of regions, depth first.
type search struct {
	regions []*region // fewest clusters first
	within  bounds
	steps   int // left
	found   []regionSet
}

func (s *search) walk(from int, chosen []*region, clusters int) {
	if len(chosen) >= s.within.least && clusters >= s.within.clusters {
		s.found = append(s.found, newRegionSet(chosen))
		return
	}
	for next := from; next < len(s.regions) && s.steps > 0; next++ {
		s.steps--
		with := clusters + len(s.regions[next].clusters)
		if s.canComplete(next+1, len(chosen)+1, with) {
			s.walk(next+1, append(chosen, s.regions[next]), with)
		}
	}
}

// canComplete reports whether a set of that many regions and clusters can still
// satisfy the bounds with regions at or after from. The largest are at the end.
func (s *search) canComplete(from, regions, clusters int) bool {
	more := min(s.within.most-regions, len(s.regions)-from)
	if more < 0 || regions+more < s.within.least {
		return false
	}
	for i := len(s.regions) - more; i < len(s.regions) && clusters < s.within.clusters; i++ {
		clusters += len(s.regions[i].clusters)
	}
	return clusters >= s.within.clusters
}

// take adds the set of the first regions in that order, if it satisfies the
// bounds.
func (s *search) take(order func(a, b *region) int) {
	sorted := slices.SortedFunc(slices.Values(s.regions), order)
	for count := s.within.least; count <= s.within.most; count++ {
		set := newRegionSet(sorted[:count])
		if s.within.satisfiedBy(&set) {
			s.found = append(s.found, set)
			return
		}
	}
}

// rankSets orders sets by score and number of clusters. In front comes the winner:
// the best set, or a set further down that is the beginning of it, because fewer
// regions do as well then.
func rankSets(sets []regionSet) []regionSet {
	slices.SortStableFunc(sets, func(a, b regionSet) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.clusters, a.clusters))
	})
	winner := 0
	for i := range sets {
		if begins(sets[i].regions, sets[winner].regions) {
			winner = i
		}
	}
	if winner > 0 {
		best := sets[winner]
		sets = slices.Insert(slices.Delete(sets, winner, winner+1), 0, best)
	}
	return sets
}

// begins reports whether all is part followed by something.
func begins(part, all []*region) bool {
	return len(part) < len(all) && slices.Equal(part, all[:len(part)])
}
