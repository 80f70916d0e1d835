package placement

import (
	"cmp"
	"slices"
)

// scoreUnit separates the first criterion of a region's score, room, from the
// second, the average score of its clusters, which is at most localityScore.
const scoreUnit = 1000

// region is the candidates of one region, most preferred first.
type region struct {
	name     string
	clusters []candidate
	score    int64
	room     int64
}

// regions groups the candidates. Those without a region belong to none.
func (t *task) regions(candidates []candidate) []region {
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
	}
	for i := range regions {
		regions[i].score = t.regionScore(regions[i].clusters)
		regions[i].room = roomOf(regions[i].clusters)
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

// regionScore is 1000 times the room that counts, plus the average score of the
// clusters that have it.
func (t *task) regionScore(clusters []candidate) int64 {
	if duplicated(t.spec.Placement) {
		return copiesScore(clusters, int64(t.spec.Replicas))
	}
	groups := int64(max(t.region.MinGroups, 1))
	share := (t.need() + groups - 1) / groups
	return shareScore(clusters, share, max(t.minClusters(), t.region.MinGroups))
}

// copiesScore counts the clusters that can take a whole copy.
func copiesScore(clusters []candidate, replicas int64) int64 {
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
	return fitting*scoreUnit + score/fitting
}

// shareScore counts the room of the region up to its even share of the replicas;
// more is of no use. The average is that of the first clusters which have the
// share together, least of them at any rate.
func shareScore(clusters []candidate, share int64, least int) int64 {
	room, score := int64(0), int64(0)
	for i := range clusters {
		room = addSaturated(room, clusters[i].available)
		score += clusters[i].score
		if taken := int64(i) + 1; taken >= int64(least) && room >= share {
			return share*scoreUnit + score/taken
		}
	}
	return min(room, share)*scoreUnit + score/int64(len(clusters))
}

// minClusters is the smallest number of clusters to select.
func (t *task) minClusters() int {
	if t.cluster == nil {
		return 0
	}
	return t.cluster.MinGroups
}

// spreadByRegion chooses a set of regions, then clusters in them: the most
// preferred of each region, and the most preferred of all the others up to the
// allowed number. Where the room is not enough it exchanges clusters inside the
// regions, and then turns to the next best sets of regions.
func (t *task) spreadByRegion(candidates []candidate) ([]candidate, error) {
	regions := t.regions(candidates)
	if len(regions) < max(t.region.MinGroups, 1) {
		return nil, t.tooFew(errTooFewRegions, max(t.region.MinGroups, 1), "region", regionNames(regions))
	}
	sets := rankSets(regionSets(regions, bounds{
		least:    max(t.region.MinGroups, 1),
		most:     limited(len(regions), t.region),
		clusters: t.minClusters(),
	}))
	if len(sets) == 0 {
		return nil, t.tooFew(errRegionsTooSmall, t.minClusters(), "cluster", namesOf(candidates))
	}
	attempts := 0
	for i := 0; i < len(sets) && attempts < maxAttempts; i++ {
		if !duplicated(t.spec.Placement) && sets[i].room < t.need() {
			continue // not even all of its clusters would do
		}
		attempts++
		s := t.swapWithin(&sets[i])
		if t.hasRoom(&s) {
			return s.chosen, nil
		}
	}
	return nil, t.noRoom(t.swapWithin(&sets[0]).chosen)
}

// swapWithin makes the first choice of clusters in a set of regions.
func (t *task) swapWithin(set *regionSet) swap {
	s := swap{perRegion: map[string]int{}}
	for _, region := range set.regions {
		s.chosen = append(s.chosen, region.clusters[0])
		s.rest = append(s.rest, region.clusters[1:]...)
	}
	slices.SortFunc(s.rest, byOrder)
	if more := limited(set.clusters, t.cluster) - len(s.chosen); more > 0 {
		s.chosen = append(s.chosen, s.rest[:more]...)
		s.rest = slices.Clone(s.rest[more:])
	}
	slices.SortFunc(s.chosen, byOrder)
	for i := range s.chosen {
		s.perRegion[s.chosen[i].region]++
	}
	return s
}

// byMerit orders regions by score, then name.
func byMerit(a, b *region) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.name, b.name))
}
