package capacity

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Sets is how many more whole sets of components the cluster can take. With models
// the sets are laid out on nodes of the reported grades, too.
func Sets(cluster *clusterv1alpha1.Cluster, components []workv1alpha2.Component, models bool) int32 {
	summary := cluster.Status.ResourceSummary
	pods := freePods(summary)
	if pods <= 0 {
		return 0
	}
	parts := partsOf(components)
	wantedPods, wanted := int64(0), map[corev1.ResourceName]int64{}
	for _, part := range parts {
		wantedPods = add(wantedPods, part.replicas)
		for name, each := range part.request {
			wanted[name] = add(wanted[name], multiply(each, part.replicas))
		}
	}
	if wantedPods <= 0 {
		return clamp(pods)
	}
	most := min(pods/wantedPods, fits(summary, wanted))
	if models {
		if grades, ok := gradesOf(cluster); ok {
			most = layOutGroups(grades, parts, int64(clamp(most)))
		}
	}
	return clamp(most)
}

// part is a component as numbers.
type part struct {
	replicas int64
	request  map[corev1.ResourceName]int64
}

func partsOf(components []workv1alpha2.Component) []part {
	parts := make([]part, len(components))
	for i := range components {
		parts[i].replicas = max(0, int64(components[i].Replicas))
		if requirements := components[i].ReplicaRequirements; requirements != nil && parts[i].replicas > 0 {
			parts[i].request = amounts(requirements.ResourceRequest)
		}
	}
	return parts
}

// layOut places whole sets, first fit, on the nodes of the grades, and returns how
// many fit, at most so many.
//
// What is free on a node only shrinks, so a node that cannot take a part now never
// will. Each part therefore goes on from the node where it stopped, and the work is
// in proportion to the nodes plus the sets.
func layOut(grades []grade, parts []part, most int64) int64 {
	nodes := nodesOf(grades, parts, most)
	next := make([]int, len(parts))
	requests := make([]map[corev1.ResourceName]int64, len(parts))
	for i := range parts {
		requests[i] = podRequest(parts[i].request)
	}
	for done := range most {
		for i := range parts {
			left := parts[i].replicas
			for left > 0 {
				if next[i] == len(nodes) {
					return done
				}
				node := nodes[next[i]]
				placed := min(left, timesIn(node, requests[i]))
				take(node, requests[i], placed)
				if left -= placed; left > 0 {
					next[i]++
				}
			}
		}
	}
	return most
}

// nodesOf makes the nodes of all grades, but no more of a grade than could each
// take one replica.
func nodesOf(grades []grade, parts []part, most int64) []map[corev1.ResourceName]int64 {
	replicas := replicasOf(parts, most)
	var nodes []map[corev1.ResourceName]int64
	for _, g := range grades {
		for range min(g.nodes, replicas) {
			nodes = append(nodes, maps.Clone(g.free))
		}
	}
	return nodes
}

// podRequest is what one replica takes of a node, one Pod at least.
func podRequest(request map[corev1.ResourceName]int64) map[corev1.ResourceName]int64 {
	kept := nodeRequest(request)
	if kept == nil {
		kept = map[corev1.ResourceName]int64{}
	}
	kept[corev1.ResourcePods] = max(1, kept[corev1.ResourcePods])
	return kept
}

// replicasOf is how many replicas so many sets have.
func replicasOf(parts []part, sets int64) int64 {
	replicas := int64(0)
	for i := range parts {
		replicas = add(replicas, multiply(parts[i].replicas, sets))
	}
	return replicas
}

func take(node, request map[corev1.ResourceName]int64, times int64) {
	for name, each := range request {
		node[name] = subtract(node[name], multiply(each, times))
	}
}
