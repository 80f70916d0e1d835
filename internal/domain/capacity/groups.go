package capacity

import (
	"math"
)

// maxNodes is the largest number of nodes that are simulated one by one. A cluster reports the
// number of its nodes itself and can report any number. The constant limits the time to place sets,
// independent of the reported number. Kubernetes supports 5000 nodes in a cluster.
const maxNodes = 8192

// placeSetsOnGroups does what placeSets does, but for any number of nodes and sets. More nodes than
// maxNodes are divided into equal groups. Only one group is simulated, because the same sets fit
// into each group. The result is exact up to maxNodes. Above this limit the result may be too small,
// but never too large.
func placeSetsOnGroups(grades []grade, parts []componentRequest, limit int64) int64 {
	limit = min(limit, maxSetsPerComponent(grades, parts))
	groups := DivideRoundingUp(countNodes(grades, parts, limit), maxNodes)
	if groups <= 1 {
		return placeSets(grades, parts, limit)
	}
	group := make([]grade, len(grades))
	for i, g := range grades {
		g.nodes /= groups
		group[i] = g
	}
	// Either every group gets whole sets, or every group gets an equal part of each set.
	whole := SaturatingMultiply(groups, placeSets(group, parts, DivideRoundingUp(limit, groups)))
	shares := placeSets(group, scaleReplicas(parts, func(replicas int64) int64 { return DivideRoundingUp(replicas, groups) }), limit)
	return min(limit, max(whole, shares))
}

// maxSetsPerComponent returns how many sets would fit if each component could use all nodes alone.
// The result is an upper limit for the number of sets.
func maxSetsPerComponent(grades []grade, parts []componentRequest) int64 {
	limit := int64(math.MaxInt64)
	for _, each := range parts {
		if each.replicas == 0 {
			continue
		}
		request := PodRequest(each.request)
		columns := ResourceColumnsOf(request)
		limit = min(limit, countReplicas(grades, columns, columns.Vector(request))/each.replicas)
	}
	return limit
}

// countNodes returns how many nodes placeSets would simulate, so that callers can limit the cost.
func countNodes(grades []grade, parts []componentRequest, limit int64) int64 {
	replicas, nodes := totalReplicas(parts, limit), int64(0)
	for _, g := range grades {
		nodes = SaturatingAdd(nodes, min(g.nodes, replicas))
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
