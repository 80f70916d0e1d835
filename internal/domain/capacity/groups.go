package capacity

import "math"

// A cluster reports the number of its nodes itself and can report any number. These two constants
// limit the time to place sets, independent of the reported number. Kubernetes supports 5000 nodes
// in a cluster.
const (
	// maxNodes is the largest number of nodes that are simulated one by one.
	maxNodes = 8192
	// maxSets is the largest number of sets that are placed one by one.
	maxSets = 1 << 16
)

// placeSetsOnGroups does what placeSets does, but for any number of nodes and sets. More nodes than
// maxNodes are divided into equal groups. Only one group is simulated, because the same sets fit
// into each group. The result is exact up to maxNodes and maxSets. Above these limits the result
// may be too small, but never too large.
func placeSetsOnGroups(grades []grade, parts []componentRequest, limit int64) int64 {
	limit = min(limit, maxSetsPerComponent(grades, parts))
	groups := divideRoundingUp(countNodes(grades, parts, limit), maxNodes)
	if groups <= 1 {
		return countSetsInBundles(grades, parts, limit)
	}
	group := make([]grade, len(grades))
	for i, g := range grades {
		g.nodes /= groups
		group[i] = g
	}
	// Either every group gets whole sets, or every group gets an equal part of each set.
	whole := multiplySaturated(groups, countSetsInBundles(group, parts, divideRoundingUp(limit, groups)))
	shares := countSetsInBundles(group, scaleReplicas(parts, func(replicas int64) int64 { return divideRoundingUp(replicas, groups) }), limit)
	return min(limit, max(whole, shares))
}

// countSetsInBundles does what placeSets does, but for any number of sets. More sets than maxSets
// are placed in bundles of several sets.
func countSetsInBundles(grades []grade, parts []componentRequest, limit int64) int64 {
	bundleSize := divideRoundingUp(limit, maxSets)
	if bundleSize <= 1 {
		return placeSets(grades, parts, limit)
	}
	bundles := placeSets(grades, scaleReplicas(parts, func(replicas int64) int64 { return multiplySaturated(replicas, bundleSize) }), divideRoundingUp(limit, bundleSize))
	return min(limit, multiplySaturated(bundles, bundleSize))
}

// maxSetsPerComponent returns how many sets would fit if each component could use all nodes alone.
// The result is an upper limit for the number of sets.
func maxSetsPerComponent(grades []grade, parts []componentRequest) int64 {
	limit := int64(math.MaxInt64)
	for _, each := range parts {
		if each.replicas == 0 {
			continue
		}
		request, replicas := podRequest(each.request), int64(0)
		for _, g := range grades {
			replicas = addSaturated(replicas, multiplySaturated(g.nodes, countFitsOnNode(g.free, request)))
		}
		limit = min(limit, replicas/each.replicas)
	}
	return limit
}

// countNodes returns how many nodes placeSets would simulate, so that callers can limit the cost.
func countNodes(grades []grade, parts []componentRequest, limit int64) int64 {
	replicas, nodes := totalReplicas(parts, limit), int64(0)
	for _, g := range grades {
		nodes = addSaturated(nodes, min(g.nodes, replicas))
	}
	return nodes
}

func scaleReplicas(parts []componentRequest, scale func(replicas int64) int64) []componentRequest {
	changed := make([]componentRequest, len(parts))
	for i, each := range parts {
		each.replicas = scale(each.replicas)
		changed[i] = each
	}
	return changed
}

// divideRoundingUp returns a divided by b, rounded up. a must not be negative.
func divideRoundingUp(a, b int64) int64 {
	quotient := a / b
	if a%b > 0 {
		quotient++
	}
	return quotient
}
