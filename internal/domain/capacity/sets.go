package capacity

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// AvailableSets returns how many more whole sets of components fit into the cluster. If models is
// true, the sets must also fit onto nodes of the reported grades.
func AvailableSets(cluster *clusterv1alpha1.Cluster, components []workv1alpha2.Component, models bool) int32 {
	summary := cluster.Status.ResourceSummary
	pods := freePods(summary)
	if pods <= 0 {
		return 0
	}
	parts := componentRequests(components)
	wantedPods, wanted := int64(0), map[corev1.ResourceName]int64{}
	for _, part := range parts {
		wantedPods = addSaturated(wantedPods, part.replicas)
		for name, each := range part.request {
			wanted[name] = addSaturated(wanted[name], multiplySaturated(each, part.replicas))
		}
	}
	if wantedPods <= 0 {
		return clamp(pods)
	}
	limit := min(pods/wantedPods, countFits(summary, wanted))
	if models {
		if grades, ok := nodeGrades(cluster); ok {
			limit = placeSetsOnGroups(grades, parts, int64(clamp(limit)))
		}
	}
	return clamp(limit)
}

// componentRequest holds the replicas and the resource request of a component as numbers.
type componentRequest struct {
	replicas int64
	request  map[corev1.ResourceName]int64
}

func componentRequests(components []workv1alpha2.Component) []componentRequest {
	parts := make([]componentRequest, len(components))
	for i := range components {
		parts[i].replicas = max(0, int64(components[i].Replicas))
		if requirements := components[i].ReplicaRequirements; requirements != nil && parts[i].replicas > 0 {
			parts[i].request = requestAmounts(requirements.ResourceRequest)
		}
	}
	return parts
}

// placeSets places whole sets on the nodes of the grades, first fit, and returns how many sets fit,
// at most limit.
//
// The free resources of a node only decrease, so a component that does not fit onto a node never
// fits onto that node later. Each component therefore continues at the node where it stopped. The
// time is proportional to the number of nodes plus the number of sets.
func placeSets(grades []grade, parts []componentRequest, limit int64) int64 {
	nodes := makeNodes(grades, parts, limit)
	next := make([]int, len(parts))
	requests := make([]map[corev1.ResourceName]int64, len(parts))
	for i := range parts {
		requests[i] = podRequest(parts[i].request)
	}
	for placedSets := range limit {
		for i := range parts {
			left := parts[i].replicas
			for left > 0 {
				if next[i] == len(nodes) {
					return placedSets
				}
				node := nodes[next[i]]
				placed := min(left, countFitsOnNode(node, requests[i]))
				reserve(node, requests[i], placed)
				if left -= placed; left > 0 {
					next[i]++
				}
			}
		}
	}
	return limit
}

// makeNodes returns the nodes of all grades. The number of nodes of one grade is at most the number
// of replicas to place.
func makeNodes(grades []grade, parts []componentRequest, limit int64) []map[corev1.ResourceName]int64 {
	replicas := totalReplicas(parts, limit)
	var nodes []map[corev1.ResourceName]int64
	for _, g := range grades {
		for range min(g.nodes, replicas) {
			nodes = append(nodes, maps.Clone(g.free))
		}
	}
	return nodes
}

// podRequest returns the node resources that one replica consumes, including at least one pod.
func podRequest(request map[corev1.ResourceName]int64) map[corev1.ResourceName]int64 {
	kept := nodeRequest(request)
	if kept == nil {
		kept = map[corev1.ResourceName]int64{}
	}
	kept[corev1.ResourcePods] = max(1, kept[corev1.ResourcePods])
	return kept
}

// totalReplicas returns the number of replicas in the given number of sets.
func totalReplicas(parts []componentRequest, sets int64) int64 {
	replicas := int64(0)
	for i := range parts {
		replicas = addSaturated(replicas, multiplySaturated(parts[i].replicas, sets))
	}
	return replicas
}

func reserve(node, request map[corev1.ResourceName]int64, times int64) {
	for name, each := range request {
		node[name] = subtractSaturated(node[name], multiplySaturated(each, times))
	}
}
