package capacity

import "math"

// SetPart is one component of a set.
type SetPart struct {
	// Replicas is the number of replicas of the component in one set. It must not be negative.
	Replicas int64
	// Request is the request of one replica. At least one of its amounts must be positive.
	Request ResourceVector
	// IsAllowed reports whether a replica may run on the node with this position. nil means that a
	// replica may run on every node. The result must not change.
	IsAllowed func(node int) bool
}

// PlaceSets places whole sets on nodes, first fit, and returns how many sets fit, at most limit.
// The vectors of the nodes are the free resources. PlaceSets subtracts what it places, including
// the replicas of the last set that does not fit completely.
//
// The replicas of a set are placed in the order of the parts. A replica is placed on the first node
// into which it fits.
//
// The time is proportional to the number of nodes, and not to the number of sets or replicas.
func PlaceSets(nodes []ResourceVector, parts []SetPart, limit int64) int64 {
	p := newPlacement(nodes, parts)
	for placed := int64(0); placed < limit; {
		if sets := min(limit-placed, p.countSetsOnCurrentNodes()); sets > 0 {
			p.reserveSets(sets)
			placed += sets
			continue
		}
		if !p.placeSet() {
			return placed
		}
		placed++
	}
	return limit
}

// placement is the state of PlaceSets. The free resources of a node only decrease, so a part that
// does not fit onto a node never fits onto that node later. Each part therefore has a current node
// and continues there.
type placement struct {
	nodes []ResourceVector
	parts []SetPart
	// current is the position of the current node of each part.
	current []int
	// demands are the requests of a whole set on each current node. Their nodes are the keys of
	// demandOn, which has the position of the demand.
	demands  []ResourceVector
	demandOn map[int]int
}

func newPlacement(nodes []ResourceVector, parts []SetPart) *placement {
	p := &placement{nodes: nodes, demandOn: make(map[int]int, len(parts))}
	for _, part := range parts {
		if part.Replicas > 0 {
			p.parts = append(p.parts, part)
		}
	}
	p.current, p.demands = make([]int, len(p.parts)), make([]ResourceVector, len(p.parts))
	for i := range p.parts {
		p.demands[i], p.current[i] = make(ResourceVector, len(p.parts[i].Request)), -1
		p.advance(i)
	}
	return p
}

// advance moves a part to its next allowed node.
func (p *placement) advance(part int) {
	for p.current[part]++; p.current[part] < len(p.nodes); p.current[part]++ {
		if isAllowed := p.parts[part].IsAllowed; isAllowed == nil || isAllowed(p.current[part]) {
			return
		}
	}
}

// countSetsOnCurrentNodes returns how many whole sets fit if every part stays on its current node.
func (p *placement) countSetsOnCurrentNodes() int64 {
	clear(p.demandOn)
	for i, part := range p.parts {
		node := p.current[i]
		if node == len(p.nodes) {
			return 0
		}
		demand := p.demand(node)
		for column, requested := range part.Request {
			demand[column] = SaturatingAdd(demand[column], SaturatingMultiply(requested, part.Replicas))
			if demand[column] == math.MaxInt64 {
				return 0 // the sum is too large to be exact
			}
		}
	}
	sets := int64(math.MaxInt64)
	for node, at := range p.demandOn {
		sets = min(sets, p.nodes[node].Fits(p.demands[at]))
	}
	return sets
}

// demand returns the demand on a node. A new demand is 0.
func (p *placement) demand(node int) ResourceVector {
	at, ok := p.demandOn[node]
	if !ok {
		at = len(p.demandOn)
		p.demandOn[node] = at
		clear(p.demands[at])
	}
	return p.demands[at]
}

func (p *placement) reserveSets(sets int64) {
	for node, at := range p.demandOn {
		p.nodes[node].reserve(p.demands[at], sets)
	}
}

// placeSet places one set and reports whether it fits completely.
func (p *placement) placeSet() bool {
	for i, part := range p.parts {
		remaining := part.Replicas
		for remaining > 0 {
			if p.current[i] == len(p.nodes) {
				return false
			}
			node := p.nodes[p.current[i]]
			placed := min(remaining, node.Fits(part.Request))
			node.reserve(part.Request, placed)
			if remaining -= placed; remaining > 0 {
				p.advance(i)
			}
		}
	}
	return true
}
