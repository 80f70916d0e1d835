package placement

import (
	"errors"
	"fmt"
	"slices"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Reasons for which spread constraints cannot be met; users read them in the
// condition.
var (
	errTooFewClusters  = errors.New("the number of feasible clusters is less than spreadConstraint.MinGroups")
	errTooFewRegions   = errors.New("the number of feasible region is less than spreadConstraint.MinGroups")
	errRegionsTooSmall = errors.New("the number of clusters is less than the cluster spreadConstraint.MinGroups")
	errUnknownSpread   = errors.New("just support cluster and region spread constraint")
)

// noRoom says what is wanted of the selected clusters together, and what each has
// room for.
func (t *task) noRoom(selected []candidate) error {
	wanted := counted(t.need(), nounReplica)
	if PlacesComponents(t.spec, t.input.Features) {
		wanted = "1 set of components"
	}
	rooms := roomsOf(selected)
	return fmt.Errorf("no enough resource when selecting %d clusters: %s wanted, room for %d%s%s",
		len(selected), wanted, roomIn(rooms), describeRooms(rooms), t.besides())
}

// PlacesComponents reports whether the components of the workload go, as a whole,
// to a single cluster. Capacity is then counted in sets of components.
func PlacesComponents(spec *workv1alpha2.ResourceBindingSpec, features Features) bool {
	if !features.MultiplePodTemplates || len(spec.Components) == 0 || spec.Placement == nil {
		return false
	}
	clusters := constraint(spec.Placement, policyv1alpha1.SpreadByFieldCluster)
	return clusters != nil && clusters.MinGroups == 1 && clusters.MaxGroups == 1
}

// need is the room that the selected clusters must have together: one set when
// components are placed, all replicas otherwise.
func (t *task) need() int64 {
	if PlacesComponents(t.spec, t.input.Features) {
		return 1
	}
	return int64(t.spec.Replicas)
}

// ignoresSpread reports whether every candidate is selected. Fixed weights name
// their clusters themselves.
func (t *task) ignoresSpread() bool {
	if len(t.spec.Placement.SpreadConstraints) == 0 {
		return true
	}
	strategy := t.spec.Placement.ReplicaScheduling
	if strategy == nil ||
		strategy.ReplicaSchedulingType != policyv1alpha1.ReplicaSchedulingTypeDivided ||
		strategy.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated {
		return false
	}
	weights := strategy.WeightPreference
	return weights == nil || (len(weights.StaticWeightList) > 0 && weights.DynamicWeight == "")
}

// selected are the candidates that satisfy the spread constraints, still in the
// order of preference.
func (t *task) selected(candidates []candidate) ([]candidate, error) {
	switch {
	case t.ignoresSpread():
		return candidates, nil
	case t.region != nil:
		return t.spreadByRegion(candidates)
	case t.cluster != nil:
		return t.spreadByCluster(candidates)
	default:
		return nil, errUnknownSpread
	}
}

// spreadByCluster takes the most preferred candidates, as many as allowed, and
// gives up preference for room where that is needed.
func (t *task) spreadByCluster(candidates []candidate) ([]candidate, error) {
	if len(candidates) < t.cluster.MinGroups {
		return nil, t.tooFew(errTooFewClusters, t.cluster.MinGroups, "cluster", namesOf(candidates))
	}
	split := limited(len(candidates), t.cluster)
	s := swap{chosen: slices.Clone(candidates[:split]), rest: slices.Clone(candidates[split:])}
	if !t.hasRoom(&s) {
		return nil, t.noRoom(s.chosen)
	}
	return s.chosen, nil
}

func namesOf(candidates []candidate) []string {
	names := make([]string, len(candidates))
	for i := range candidates {
		names[i] = candidates[i].name
	}
	return names
}

// limited is count, or maxGroups of the constraint if that is less. A maxGroups of
// 0 means no limit.
func limited(count int, limit *policyv1alpha1.SpreadConstraint) int {
	if limit == nil || limit.MaxGroups <= 0 {
		return count
	}
	return min(count, limit.MaxGroups)
}

// hasRoom exchanges clusters until the chosen ones have room for what is needed
// and reports whether they have. Copies of a workload do not share room.
func (t *task) hasRoom(s *swap) bool {
	if duplicated(t.spec.Placement) {
		return true
	}
	return s.raise(t.need())
}

// swap exchanges chosen clusters for others with more room.
type swap struct {
	chosen, rest []candidate
	// perRegion counts the chosen clusters of each region none of which may lose
	// its last one. Nil if regions do not matter.
	perRegion map[string]int
}

// raise replaces chosen clusters, the least preferred first, by the roomiest of
// the rest until there is room for need, and reports whether there is.
func (s *swap) raise(need int64) bool {
	for i := len(s.chosen) - 1; i >= 0 && roomOf(s.chosen) < need; i-- {
		best := -1
		for j := range s.rest {
			if s.mayReplace(i, j) && (best < 0 || s.rest[j].available > s.rest[best].available) {
				best = j
			}
		}
		if best >= 0 && s.rest[best].available > s.chosen[i].available {
			s.exchange(i, best)
		}
	}
	slices.SortFunc(s.chosen, byOrder)
	return roomOf(s.chosen) >= need
}

func (s *swap) mayReplace(i, j int) bool {
	out, in := s.chosen[i].region, s.rest[j].region
	return s.perRegion == nil || out == in || s.perRegion[out] > 1
}

func (s *swap) exchange(i, j int) {
	if s.perRegion != nil {
		s.perRegion[s.chosen[i].region]--
		s.perRegion[s.rest[j].region]++
	}
	s.chosen[i], s.rest[j] = s.rest[j], s.chosen[i]
}
