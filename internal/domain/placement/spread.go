package placement

import (
	"errors"
	"fmt"
	"slices"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/capacity"
)

// Errors for spread constraints that cannot be satisfied. Users read them in the Scheduled
// condition.
var (
	errTooFewClusters  = errors.New("the number of feasible clusters is less than spreadConstraint.MinGroups")
	errTooFewRegions   = errors.New("the number of feasible region is less than spreadConstraint.MinGroups")
	errRegionsTooSmall = errors.New("the number of clusters is less than the cluster spreadConstraint.MinGroups")
	errUnknownSpread   = errors.New("just support cluster and region spread constraint")
)

// notEnoughCapacityError returns an error with the required capacity and the capacity of each
// selected cluster.
func (t *task) notEnoughCapacityError(selected []candidate) error {
	wanted := countWithNoun(t.requiredCapacity(), nounReplica)
	if PlacesComponents(t.spec, t.input.Features) {
		wanted = "1 set of components"
	}
	capacities := availableCapacities(selected)
	return fmt.Errorf("no enough resource when selecting %d clusters: %s wanted, room for %d%s%s",
		len(selected), wanted, totalCapacity(capacities), describeCapacities(capacities), t.rejectionSuffix())
}

// PlacesComponents reports whether all components of the workload are placed together in a single
// cluster. Capacity is then counted in sets of components.
func PlacesComponents(spec *workv1alpha2.ResourceBindingSpec, features Features) bool {
	if !features.MultiplePodTemplates || len(spec.Components) == 0 || spec.Placement == nil {
		return false
	}
	clusters := spreadConstraint(spec.Placement, policyv1alpha1.SpreadByFieldCluster)
	return clusters != nil && clusters.MinGroups == 1 && clusters.MaxGroups == 1
}

// DemandOf returns the workload of a binding for which EstimateReplicas estimates the capacity of
// clusters.
func DemandOf(spec *workv1alpha2.ResourceBindingSpec, features Features) capacity.Demand {
	demand := capacity.Demand{Workload: spec.Resource, Requirements: spec.ReplicaRequirements}
	if PlacesComponents(spec, features) {
		demand.Components = spec.Components
	}
	return demand
}

// requiredCapacity returns the capacity that the selected clusters need together: one set if
// components are placed, otherwise all replicas.
func (t *task) requiredCapacity() int64 {
	if PlacesComponents(t.spec, t.input.Features) {
		return 1
	}
	return int64(t.spec.Replicas)
}

// ignoresSpreadConstraints reports whether every candidate is selected. This is the case for fixed
// weights, because the weights determine the clusters.
func (t *task) ignoresSpreadConstraints() bool {
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

// selectCandidates returns the candidates that satisfy the spread constraints, in the order of
// preference.
func (t *task) selectCandidates(candidates []candidate) ([]candidate, error) {
	switch {
	case t.ignoresSpreadConstraints():
		return candidates, nil
	case t.regionConstraint != nil:
		return t.spreadByRegion(candidates)
	case t.clusterConstraint != nil:
		return t.spreadByCluster(candidates)
	default:
		return nil, errUnknownSpread
	}
}

// spreadByCluster selects the most preferred candidates up to maxGroups. If the capacity is not
// sufficient, it swaps some of them for less preferred candidates with more capacity.
func (t *task) spreadByCluster(candidates []candidate) ([]candidate, error) {
	if len(candidates) < t.clusterConstraint.MinGroups {
		return nil, t.tooFewError(errTooFewClusters, t.clusterConstraint.MinGroups, "cluster", candidateNames(candidates))
	}
	split := limitToMaxGroups(len(candidates), t.clusterConstraint)
	s := clusterSwap{selected: slices.Clone(candidates[:split]), remaining: slices.Clone(candidates[split:])}
	if !t.ensureCapacity(&s) {
		return nil, t.notEnoughCapacityError(s.selected)
	}
	return s.selected, nil
}

func candidateNames(candidates []candidate) []string {
	names := make([]string, len(candidates))
	for i := range candidates {
		names[i] = candidates[i].name
	}
	return names
}

// limitToMaxGroups returns count, or maxGroups of the constraint if that is less. A maxGroups of
// 0 means no limit.
func limitToMaxGroups(count int, limit *policyv1alpha1.SpreadConstraint) int {
	if limit == nil || limit.MaxGroups <= 0 {
		return count
	}
	return min(count, limit.MaxGroups)
}

// ensureCapacity swaps clusters until the selected clusters have the required capacity, and reports
// whether they have it. It swaps nothing for duplicated replicas, because every cluster runs all of
// them, so the clusters do not share the required capacity.
func (t *task) ensureCapacity(s *clusterSwap) bool {
	if isDuplicated(t.spec.Placement) {
		return true
	}
	return s.raiseCapacity(t.requiredCapacity())
}

// clusterSwap swaps selected clusters for remaining clusters with more capacity.
type clusterSwap struct {
	selected, remaining []candidate
	// selectedPerRegion is the number of selected clusters of each region. The last selected
	// cluster of a region is never swapped. Nil means that regions are ignored.
	selectedPerRegion map[string]int
}

// raiseCapacity replaces selected clusters, least preferred first, by the remaining cluster with
// the most capacity, until the required capacity is reached. It reports whether the required
// capacity is reached.
func (c *clusterSwap) raiseCapacity(required int64) bool {
	for i := len(c.selected) - 1; i >= 0 && totalAvailable(c.selected) < required; i-- {
		best := -1
		for j := range c.remaining {
			if c.canReplace(i, j) && (best < 0 || c.remaining[j].available > c.remaining[best].available) {
				best = j
			}
		}
		if best >= 0 && c.remaining[best].available > c.selected[i].available {
			c.exchange(i, best)
		}
	}
	slices.SortFunc(c.selected, compareRank)
	return totalAvailable(c.selected) >= required
}

func (c *clusterSwap) canReplace(i, j int) bool {
	out, in := c.selected[i].region, c.remaining[j].region
	return c.selectedPerRegion == nil || out == in || c.selectedPerRegion[out] > 1
}

func (c *clusterSwap) exchange(i, j int) {
	if c.selectedPerRegion != nil {
		c.selectedPerRegion[c.selected[i].region]--
		c.selectedPerRegion[c.remaining[j].region]++
	}
	c.selected[i], c.remaining[j] = c.remaining[j], c.selected[i]
}
