package placement

import (
	"cmp"
	"slices"
)

// capacityScoreUnit weights the capacity in a region's score, so that it takes precedence over the
// average score of the region's clusters, to which each score plugin contributes at most maxScore.
const capacityScoreUnit = 1000

// region holds the candidates of one region, most preferred first.
type region struct {
	name      string
	clusters  []candidate
	score     int64
	available int64
	// isUsed is true if a cluster in the region has the template, the region still has capacity for it,
	// and no user requested a move.
	isUsed bool
}

// groupByRegion groups the candidates by region. Candidates without a region are omitted.
func (t *task) groupByRegion(candidates []candidate) []region {
	index := map[string]int{}
	var regions []region
	for _, candidate := range candidates {
		if candidate.region == "" {
			continue
		}
		i, ok := index[candidate.region]
		if !ok {
			i = len(regions)
			index[candidate.region] = i
			regions = append(regions, region{name: candidate.region})
		}
		regions[i].clusters = append(regions[i].clusters, candidate)
		regions[i].isUsed = regions[i].isUsed || t.isTarget(candidate.name)
	}
	for i := range regions {
		regions[i].score = t.regionScore(regions[i].clusters)
		regions[i].available = totalAvailable(regions[i].clusters)
		regions[i].isUsed = regions[i].isUsed && regions[i].score >= capacityScoreUnit && !t.input.isMoveRequested()
	}
	return regions
}

func regionNames(regions []region) []string {
	names := make([]string, len(regions))
	for i := range regions {
		names[i] = regions[i].name
	}
	return names
}

// regionScore returns a region's score: capacityScoreUnit times the usable capacity, plus the average
// score of the clusters that provide this capacity.
func (t *task) regionScore(clusters []candidate) int64 {
	if isDuplicated(t.spec.Placement) {
		return duplicatedRegionScore(clusters, int64(t.spec.Replicas))
	}
	groups := int64(max(t.regionConstraint.MinGroups, 1))
	share := (t.requiredCapacity() + groups - 1) / groups
	return dividedRegionScore(clusters, share, max(t.minClusters(), t.regionConstraint.MinGroups))
}

// duplicatedRegionScore returns a region's score for duplicated replicas. The usable capacity is the
// number of clusters that have room for all replicas.
func duplicatedRegionScore(clusters []candidate, replicas int64) int64 {
	fitting, score := int64(0), int64(0)
	for i := range clusters {
		if clusters[i].available >= replicas {
			fitting++
			score += clusters[i].score
		}
	}
	if fitting == 0 {
		return 0
	}
	return fitting*capacityScoreUnit + score/fitting
}

// dividedRegionScore returns a region's score for divided replicas. The usable capacity is at most
// share, the region's even share of the replicas. The average score includes the first clusters that
// together have enough capacity for the share, but at least minClusters clusters.
func dividedRegionScore(clusters []candidate, share int64, minClusters int) int64 {
	available, score := int64(0), int64(0)
	for i := range clusters {
		available = addSaturated(available, clusters[i].available)
		score += clusters[i].score
		if taken := int64(i) + 1; taken >= int64(minClusters) && available >= share {
			return share*capacityScoreUnit + score/taken
		}
	}
	return min(available, share)*capacityScoreUnit + score/int64(len(clusters))
}

// minClusters returns the minimum number of clusters to select.
func (t *task) minClusters() int {
	if t.clusterConstraint == nil {
		return 0
	}
	return t.clusterConstraint.MinGroups
}

// spreadByRegion selects a set of regions, the most preferred cluster in each of these regions, and
// then further clusters up to the maximum number. The regions in use are tried first. If the clusters
// lack capacity, spreadByRegion first swaps clusters of the same set of regions, and then tries the
// next best set.
func (t *task) spreadByRegion(candidates []candidate) ([]candidate, error) {
	regions := t.groupByRegion(candidates)
	if len(regions) < max(t.regionConstraint.MinGroups, 1) {
		return nil, t.tooFewError(errTooFewRegions, max(t.regionConstraint.MinGroups, 1), "region", regionNames(regions))
	}
	bounds := regionBounds{
		minRegions:  max(t.regionConstraint.MinGroups, 1),
		maxRegions:  limitToMaxGroups(len(regions), t.regionConstraint),
		minClusters: t.minClusters(),
	}
	sets := append(usedRegionSets(regions, bounds), rankRegionSets(findRegionSets(regions, bounds))...)
	if len(sets) == 0 {
		return nil, t.tooFewError(errRegionsTooSmall, t.minClusters(), "cluster", candidateNames(candidates))
	}
	attempts := 0
	for i := 0; i < len(sets) && attempts < maxCapacityAttempts; i++ {
		if !isDuplicated(t.spec.Placement) && sets[i].available < t.requiredCapacity() {
			continue // the clusters of the set together do not have enough capacity
		}
		attempts++
		s := t.newRegionSwap(&sets[i])
		if t.ensureCapacity(&s) {
			return s.selected, nil
		}
	}
	return nil, t.notEnoughCapacityError(t.newRegionSwap(&sets[0]).selected)
}

// newRegionSwap returns the initial selection of clusters in a set of regions.
func (t *task) newRegionSwap(set *regionSet) clusterSwap {
	s := clusterSwap{selectedPerRegion: map[string]int{}}
	for _, region := range set.regions {
		s.selected = append(s.selected, region.clusters[0])
		s.remaining = append(s.remaining, region.clusters[1:]...)
	}
	slices.SortFunc(s.remaining, compareRank)
	if more := limitToMaxGroups(set.clusters, t.clusterConstraint) - len(s.selected); more > 0 {
		s.selected = append(s.selected, s.remaining[:more]...)
		s.remaining = slices.Clone(s.remaining[more:])
	}
	slices.SortFunc(s.selected, compareRank)
	for i := range s.selected {
		s.selectedPerRegion[s.selected[i].region]++
	}
	return s
}

// compareRegions sorts regions by descending score, then by name.
func compareRegions(a, b *region) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.name, b.name))
}
