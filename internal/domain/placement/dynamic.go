package placement

import (
	"cmp"
	"slices"
)

// capacity is the room of a candidate in a division by capacity.
type capacity struct {
	name string
	room int64
	held bool // the candidate has replicas already
}

// divideByRoom divides in proportion to the room of the clusters.
func divideByRoom(t *task, candidates []candidate, want int64) ([]Share, error) {
	return t.divideDynamic(candidates, want, proportional)
}

// divideAggregated divides over as few clusters as have room, first over those
// that run the workload already.
func divideAggregated(t *task, candidates []candidate, want int64) ([]Share, error) {
	return t.divideDynamic(candidates, want, aggregated)
}

// narrow picks, of capacities in descending order, those that share want.
type narrow func(capacities []capacity, want int64) []capacity

func proportional(capacities []capacity, _ int64) []capacity { return capacities }

// aggregated is the shortest prefix that has room for want, clusters which hold
// replicas going first.
func aggregated(capacities []capacity, want int64) []capacity {
	slices.SortStableFunc(capacities, func(a, b capacity) int {
		switch {
		case a.held == b.held:
			return 0
		case a.held:
			return -1
		default:
			return 1
		}
	})
	sum := int64(0)
	for i := range capacities {
		if sum >= want {
			return capacities[:i]
		}
		sum = addSaturated(sum, capacities[i].room)
	}
	return capacities
}

// divideDynamic adds what is missing to the present shares, or takes away what is
// too much, and leaves them alone otherwise. A requested reschedule starts from
// nothing instead.
func (t *task) divideDynamic(candidates []candidate, want int64, by narrow) ([]Share, error) {
	current := t.current(candidates)
	held := int64(0)
	for _, share := range current {
		held = addSaturated(held, share.Replicas)
	}
	switch {
	case t.fresh:
		shares, err := t.divideFresh(candidates, want, by)
		return shares, stepError("failed to schedule afresh", err)
	case held > want:
		shares, err := t.scaleDown(current, want, by)
		return shares, stepError("failed to scale down", err)
	case held < want:
		shares, err := t.scaleUp(candidates, current, want-held, by)
		return shares, stepError("failed to scale up", err)
	default:
		return current, nil
	}
}

// current are the present shares of the clusters that are still candidates, in
// their recorded order.
func (t *task) current(candidates []candidate) []Share {
	still := make(map[string]bool, len(candidates))
	for i := range candidates {
		still[candidates[i].name] = true
	}
	var shares []Share
	for _, name := range t.previous {
		if still[name] {
			shares = append(shares, Share{Name: name, Replicas: t.assigned[name]})
		}
	}
	return shares
}

// divideFresh divides as if the present replicas were free room.
func (t *task) divideFresh(candidates []candidate, want int64, by narrow) ([]Share, error) {
	capacities := make([]capacity, len(candidates))
	for i := range candidates {
		capacities[i] = capacity{name: candidates[i].name, room: candidates[i].available}
	}
	return t.divideCapacities(capacities, want, nounReplica, by)
}

// scaleDown divides in proportion to what each cluster has. Their real room is not
// asked: giving up replicas needs none.
func (t *task) scaleDown(current []Share, want int64, by narrow) ([]Share, error) {
	capacities := make([]capacity, len(current))
	for i, share := range current {
		capacities[i] = capacity{name: share.Name, room: share.Replicas}
	}
	return t.divideCapacities(capacities, want, nounReplica, by)
}

// scaleUp divides the missing replicas by free room and adds them to the present
// ones: first the clusters of the new division by name, then the others by name.
func (t *task) scaleUp(candidates []candidate, current []Share, missing int64, by narrow) ([]Share, error) {
	capacities := make([]capacity, len(candidates))
	for i := range candidates {
		name := candidates[i].name
		capacities[i] = capacity{name: name, room: candidates[i].allocatable, held: t.assigned[name] > 0}
	}
	shares, err := t.divideCapacities(capacities, missing, missingNoun(len(current)), by)
	if err != nil {
		return nil, err
	}
	added := make(map[string]bool, len(shares))
	for i := range shares {
		added[shares[i].Name] = true
		shares[i].Replicas += t.assigned[shares[i].Name]
	}
	others := slices.DeleteFunc(slices.Clone(current), func(share Share) bool { return added[share.Name] })
	slices.SortFunc(others, func(a, b Share) int { return cmp.Compare(a.Name, b.Name) })
	return append(shares, others...), nil
}

// missingNoun is what a message calls the replicas that are missing beside those
// in that many clusters.
func missingNoun(present int) string {
	if present > 0 {
		return nounMoreReplica
	}
	return nounReplica
}

// divideCapacities divides want over capacities, which it reorders. A message calls
// what is wanted by the noun.
func (t *task) divideCapacities(capacities []capacity, want int64, noun string, by narrow) ([]Share, error) {
	if roomIn(capacities) < want {
		return nil, t.notEnough(want, noun, capacities)
	}
	slices.SortStableFunc(capacities, func(a, b capacity) int { return cmp.Compare(b.room, a.room) })
	chosen := by(capacities, want)
	parties := make([]Party, len(chosen))
	for i := range chosen {
		parties[i] = Party{Name: chosen[i].name, Weight: chosen[i].room}
	}
	return Divide(want, parties, t.tieUID()), nil
}
