package packing

import "math"

// Part is one component of a set.
type Part struct {
	// Replicas is the number of replicas of the component in one set. It must not be negative.
	Replicas int64
	// Request is the request of one replica. At least one of its amounts must be positive.
	Request Vector
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
func PlaceSets(nodes []Vector, parts []Part, limit int64) int64 {
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
	nodes []Vector
	parts []Part
	// current is the position of the current node of each part.
	current []int
	// demand is the request of a whole set on each current node, by the position of the node.
	demand map[int]Vector
}

func newPlacement(nodes []Vector, parts []Part) *placement {
	p := &placement{nodes: nodes, demand: make(map[int]Vector, len(parts))}
	for _, part := range parts {
		if part.Replicas > 0 {
			p.parts = append(p.parts, part)
		}
	}
	p.current = make([]int, len(p.parts))
	for i := range p.parts {
		p.current[i] = -1
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
	clear(p.demand)
	for i, part := range p.parts {
		node := p.current[i]
		if node == len(p.nodes) {
			return 0
		}
		demand, ok := p.demand[node]
		if !ok {
			demand = make(Vector, len(part.Request))
			p.demand[node] = demand
		}
		for column, requested := range part.Request {
			demand[column] = Add(demand[column], Multiply(requested, part.Replicas))
			if demand[column] == math.MaxInt64 {
				return 0 // the sum is too large to be exact
			}
		}
	}
	sets := int64(math.MaxInt64)
	for node, demand := range p.demand {
		sets = min(sets, p.nodes[node].Fits(demand))
	}
	return sets
}

func (p *placement) reserveSets(sets int64) {
	for node, demand := range p.demand {
		p.nodes[node].reserve(demand, sets)
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
