package placement

import (
	"cmp"
	"slices"
)

// clusterCapacity is the capacity of a candidate in a division by capacity. replicas is the largest
// share that the candidate can get.
type clusterCapacity struct {
	name        string
	replicas    int64
	hasReplicas bool // whether the cluster has replicas before the division
}

// divideByCapacity divides the replicas in proportion to the capacity of the clusters.
func divideByCapacity(t *task, candidates []candidate, want int64) ([]Share, error) {
	return t.divideDynamic(candidates, want, selectAll)
}

// divideAggregated divides the replicas over as few clusters as possible. It prefers clusters that
// already run the workload.
func divideAggregated(t *task, candidates []candidate, want int64) ([]Share, error) {
	return t.divideDynamic(candidates, want, selectFewest)
}

// capacitySelector selects the clusters over which want is divided. It may change the order of
// capacities.
type capacitySelector func(capacities []clusterCapacity, want int64) []clusterCapacity

func selectAll(capacities []clusterCapacity, _ int64) []clusterCapacity { return capacities }

// selectFewest returns as few clusters as possible that together have enough capacity for want. It
// sorts clusters that already have replicas first, then by descending capacity, and returns the
// shortest sufficient prefix.
func selectFewest(capacities []clusterCapacity, want int64) []clusterCapacity {
	compare := func(a, b clusterCapacity) int {
		switch {
		case a.hasReplicas == b.hasReplicas:
			return cmp.Compare(b.replicas, a.replicas)
		case a.hasReplicas:
			return -1
		default:
			return 1
		}
	}
	if !slices.IsSortedFunc(capacities, compare) { // candidates usually are
		slices.SortStableFunc(capacities, compare)
	}
	sum := int64(0)
	for i := range capacities {
		if sum >= want {
			return capacities[:i]
		}
		sum = addSaturated(sum, capacities[i].replicas)
	}
	return capacities
}

// divideDynamic adds missing replicas to the present shares, or removes surplus replicas from them.
// If the number of replicas is right, it returns the present shares. If a reschedule was requested,
// it ignores the present shares.
func (t *task) divideDynamic(candidates []candidate, want int64, selector capacitySelector) ([]Share, error) {
	current := t.currentShares(candidates)
	placed := int64(0)
	for _, share := range current {
		placed = addSaturated(placed, share.Replicas)
	}
	switch {
	case t.rescheduleRequested:
		shares, err := t.divideFresh(candidates, want, selector)
		return shares, stepError("failed to schedule afresh", err)
	case placed > want:
		shares, err := t.scaleDown(current, want, selector)
		return shares, stepError("failed to scale down", err)
	case placed < want:
		shares, err := t.scaleUp(candidates, current, want-placed, selector)
		return shares, stepError("failed to scale up", err)
	default:
		return current, nil
	}
}

// currentShares returns the present shares of the clusters that are still candidates, in the
// order of spec.clusters.
func (t *task) currentShares(candidates []candidate) []Share {
	isCandidate := make(map[string]bool, len(t.previousTargets))
	for i := range candidates {
		if t.isTarget(candidates[i].name) {
			isCandidate[candidates[i].name] = true
		}
	}
	var shares []Share
	for _, name := range t.previousTargets {
		if isCandidate[name] {
			shares = append(shares, Share{Name: name, Replicas: t.assignedReplicas[name]})
		}
	}
	return shares
}

// divideFresh divides the replicas as if the capacity that the present replicas use were free.
func (t *task) divideFresh(candidates []candidate, want int64, selector capacitySelector) ([]Share, error) {
	capacities := make([]clusterCapacity, len(candidates))
	for i := range candidates {
		capacities[i] = clusterCapacity{name: candidates[i].name, replicas: candidates[i].available}
	}
	return t.divideCapacities(capacities, want, nounReplica, selector)
}

// scaleDown divides the replicas in proportion to the present shares. It ignores the real capacity,
// because fewer replicas always fit.
func (t *task) scaleDown(current []Share, want int64, selector capacitySelector) ([]Share, error) {
	capacities := make([]clusterCapacity, len(current))
	for i, share := range current {
		capacities[i] = clusterCapacity{name: share.Name, replicas: share.Replicas}
	}
	return t.divideCapacities(capacities, want, nounReplica, selector)
}

// scaleUp divides the missing replicas by free capacity and adds them to the present shares. The
// result lists the clusters of the new division by name, then the other clusters by name.
func (t *task) scaleUp(candidates []candidate, current []Share, missing int64, selector capacitySelector) ([]Share, error) {
	capacities := make([]clusterCapacity, len(candidates))
	for i := range candidates {
		name := candidates[i].name
		capacities[i] = clusterCapacity{name: name, replicas: candidates[i].allocatable, hasReplicas: t.assignedReplicas[name] > 0}
	}
	shares, err := t.divideCapacities(capacities, missing, missingReplicasNoun(len(current)), selector)
	if err != nil {
		return nil, err
	}
	if len(current) == 0 {
		return shares, nil
	}
	isScaledUp := make(map[string]bool, len(shares))
	for i := range shares {
		isScaledUp[shares[i].Name] = true
		shares[i].Replicas += t.assignedReplicas[shares[i].Name]
	}
	others := slices.DeleteFunc(slices.Clone(current), func(share Share) bool { return isScaledUp[share.Name] })
	slices.SortFunc(others, func(a, b Share) int { return cmp.Compare(a.Name, b.Name) })
	return append(shares, others...), nil
}

// missingReplicasNoun returns the noun for missing replicas in a message. If some clusters already
// have replicas, the noun is "more replica".
func missingReplicasNoun(present int) string {
	if present > 0 {
		return nounMoreReplica
	}
	return nounReplica
}

// divideCapacities divides want over capacities and may change the order of capacities. noun is the
// noun for want in an error message.
func (t *task) divideCapacities(capacities []clusterCapacity, want int64, noun string, selector capacitySelector) ([]Share, error) {
	if totalCapacity(capacities) < want {
		return nil, t.notEnoughError(want, noun, capacities)
	}
	chosen := selector(capacities, want)
	parties := make([]WeightedCluster, len(chosen))
	for i := range chosen {
		parties[i] = WeightedCluster{Name: chosen[i].name, Weight: chosen[i].replicas}
	}
	return Divide(want, parties, t.tieBreakUID()), nil
}
