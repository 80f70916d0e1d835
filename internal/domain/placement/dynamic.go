package placement

import (
	"cmp"
	"slices"
)

// clusterCapacity is a candidate's capacity in a division by capacity.
type clusterCapacity struct {
	name        string
	replicas    int64 // the largest share that the candidate can get
	hasReplicas bool  // whether the cluster has replicas before the division
}

// divideByCapacity divides the replicas in proportion to the candidates' capacity.
func divideByCapacity(t *task, candidates []candidate, want int64) ([]Share, error) {
	return t.divideDynamic(candidates, want, selectAll)
}

// divideAggregated divides the replicas among as few clusters as possible, and prefers clusters that
// already run the workload.
func divideAggregated(t *task, candidates []candidate, want int64) ([]Share, error) {
	return t.divideDynamic(candidates, want, selectFewest)
}

// capacitySelector selects the clusters among which want replicas are divided. It may reorder
// capacities.
type capacitySelector func(capacities []clusterCapacity, want int64) []clusterCapacity

func selectAll(capacities []clusterCapacity, _ int64) []clusterCapacity { return capacities }

// selectFewest returns the shortest sufficient prefix of the clusters, sorted by whether they already
// have replicas and then by descending capacity.
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

// divideDynamic adds missing replicas to the current shares or removes surplus replicas from them. If a
// reschedule was requested, it ignores the current shares.
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

// currentShares returns the shares of the targets that are still candidates, in the order of
// spec.clusters.
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

// divideFresh divides all replicas again, as if the current replicas used no capacity.
func (t *task) divideFresh(candidates []candidate, want int64, selector capacitySelector) ([]Share, error) {
	capacities := make([]clusterCapacity, len(candidates))
	for i := range candidates {
		capacities[i] = clusterCapacity{name: candidates[i].name, replicas: candidates[i].available}
	}
	return t.divideCapacities(capacities, want, nounReplica, selector)
}

// scaleDown divides the replicas in proportion to the current shares. It ignores the clusters'
// capacity, because fewer replicas always fit.
func (t *task) scaleDown(current []Share, want int64, selector capacitySelector) ([]Share, error) {
	capacities := make([]clusterCapacity, len(current))
	for i, share := range current {
		capacities[i] = clusterCapacity{name: share.Name, replicas: share.Replicas}
	}
	return t.divideCapacities(capacities, want, nounReplica, selector)
}

// scaleUp divides the missing replicas in proportion to the free capacity, and adds them to the
// current shares. The result lists the clusters that get more replicas, and then the others by name.
func (t *task) scaleUp(candidates []candidate, current []Share, missing int64, selector capacitySelector) ([]Share, error) {
	capacities := make([]clusterCapacity, len(candidates))
	for i := range candidates {
		name := candidates[i].name
		capacities[i] = clusterCapacity{name: name, replicas: candidates[i].allocatable, hasReplicas: t.assignedReplicas[name] > 0}
	}
	noun := nounReplica
	if len(current) > 0 {
		noun = nounMoreReplica
	}
	shares, err := t.divideCapacities(capacities, missing, noun, selector)
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

// divideCapacities divides want replicas among the clusters that selector selects. noun stands for the
// replicas in the error message. capacities may be reordered.
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
