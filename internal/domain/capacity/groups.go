package capacity

import "math"

// A cluster reports the number of its nodes itself, and any number is possible. The
// work of laying out sets is bounded by these two and not by what is reported.
// Kubernetes supports 5000 nodes in a cluster.
const (
	// maxNodes is the largest number of nodes that are laid out one by one.
	maxNodes = 8192
	// maxSets is the largest number of sets that are laid out one by one.
	maxSets = 1 << 16
)

// layOutGroups is layOut for any number of nodes and sets. More nodes than maxNodes
// are divided into equal groups, and one is laid out: what fits there fits into
// each. The result is never more than what fits. It is exact up to the two limits.
func layOutGroups(grades []grade, parts []part, most int64) int64 {
	most = min(most, alone(grades, parts))
	groups := ceiling(nodesIn(grades, parts, most), maxNodes)
	if groups <= 1 {
		return layOutSets(grades, parts, most)
	}
	one := make([]grade, len(grades))
	for i, g := range grades {
		g.nodes /= groups
		one[i] = g
	}
	// Either every group takes whole sets, or every group takes its share of each set.
	whole := multiply(groups, layOutSets(one, parts, ceiling(most, groups)))
	shares := layOutSets(one, scaled(parts, func(replicas int64) int64 { return ceiling(replicas, groups) }), most)
	return min(most, max(whole, shares))
}

// layOutSets is layOut for any number of sets. More than maxSets are laid out several
// at a time.
func layOutSets(grades []grade, parts []part, most int64) int64 {
	at := ceiling(most, maxSets)
	if at <= 1 {
		return layOut(grades, parts, most)
	}
	bundles := layOut(grades, scaled(parts, func(replicas int64) int64 { return multiply(replicas, at) }), ceiling(most, at))
	return min(most, multiply(bundles, at))
}

// alone is how many sets would fit if every component had all nodes to itself.
func alone(grades []grade, parts []part) int64 {
	most := int64(math.MaxInt64)
	for _, each := range parts {
		if each.replicas == 0 {
			continue
		}
		request, room := podRequest(each.request), int64(0)
		for _, g := range grades {
			room = add(room, multiply(g.nodes, timesIn(g.free, request)))
		}
		most = min(most, room/each.replicas)
	}
	return most
}

// nodesIn is the number of nodes that layOut would make.
func nodesIn(grades []grade, parts []part, most int64) int64 {
	replicas, nodes := replicasOf(parts, most), int64(0)
	for _, g := range grades {
		nodes = add(nodes, min(g.nodes, replicas))
	}
	return nodes
}

func scaled(parts []part, scale func(replicas int64) int64) []part {
	changed := make([]part, len(parts))
	for i, each := range parts {
		each.replicas = scale(each.replicas)
		changed[i] = each
	}
	return changed
}

// ceiling is a divided by b, rounded up, for a that is not negative.
func ceiling(a, b int64) int64 {
	quotient := a / b
	if a%b > 0 {
		quotient++
	}
	return quotient
}
