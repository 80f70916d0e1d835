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

// notEnoughCapacityError returns an error that shows the required capacity and the capacity of each
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

// PlacesComponents reports whether all components of the workload run together in a single cluster.
// Capacity is then counted in sets of components.
func PlacesComponents(spec *workv1alpha2.ResourceBindingSpec, features Features) bool {
	if !features.MultiplePodTemplates || len(spec.Components) == 0 || spec.Placement == nil {
		return false
	}
	clusters := spreadConstraint(spec.Placement, policyv1alpha1.SpreadByFieldCluster)
	return clusters != nil && clusters.MinGroups == 1 && clusters.MaxGroups == 1
}

// DemandOf returns the binding's resource demand, for which EstimateReplicas estimates the capacity.
func DemandOf(spec *workv1alpha2.ResourceBindingSpec, features Features) capacity.Demand {
	demand := capacity.Demand{Workload: spec.Resource, Requirements: spec.ReplicaRequirements}
	if PlacesComponents(spec, features) {
		demand.Components = spec.Components
	}
	return demand
}

// requiredCapacity returns the total capacity that the selected clusters need: one set of components,
// or all replicas.
func (t *task) requiredCapacity() int64 {
	if PlacesComponents(t.spec, t.input.Features) {
		return 1
	}
	return int64(t.spec.Replicas)
}

// ignoresSpreadConstraints reports whether all candidates are selected: there are no spread
// constraints, or the replicas have static or equal weights, which determine the clusters.
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

// selectCandidates selects candidates that satisfy the spread constraints, most preferred first.
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

// spreadByCluster selects the maxGroups most preferred candidates. If they lack capacity, it swaps some
// of them for less preferred candidates with more capacity.
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

// limitToMaxGroups returns the smaller one of count and the constraint's maxGroups. A maxGroups of 0
// means no limit.
func limitToMaxGroups(count int, limit *policyv1alpha1.SpreadConstraint) int {
	if limit == nil || limit.MaxGroups <= 0 {
		return count
	}
	return min(count, limit.MaxGroups)
}

// ensureCapacity swaps clusters until the selected ones have the required capacity, and reports whether
// this succeeded. Duplicated replicas do not share the clusters' capacity, so nothing is swapped.
func (t *task) ensureCapacity(s *clusterSwap) bool {
	if isDuplicated(t.spec.Placement) {
		return true
	}
	return s.raiseCapacity(t.requiredCapacity())
}

// clusterSwap swaps selected clusters for remaining clusters with more capacity.
type clusterSwap struct {
	selected, remaining []candidate
	// selectedPerRegion holds the number of selected clusters by region. A region's last selected
	// cluster is not swapped for one in another region. If it is nil, regions are ignored.
	selectedPerRegion map[string]int
}

// raiseCapacity replaces selected clusters, the least preferred first, with the remaining cluster that
// has the most capacity, until the selected clusters have the required capacity. It reports whether
// this succeeded.
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
