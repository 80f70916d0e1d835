package capacity

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// podsPerNode is what Kubernetes allows on a node by default. Grades do not say
// how many pods their nodes take.
const podsPerNode = 110

// grade is a number of nodes that have at least so much free each.
type grade struct {
	rank  uint
	nodes int64
	free  map[corev1.ResourceName]int64
}

// gradesOf are the grades of the cluster that have nodes, lowest first. ok is
// false when the cluster does not say enough to go by grades.
func gradesOf(cluster *clusterv1alpha1.Cluster) (grades []grade, ok bool) {
	summary := cluster.Status.ResourceSummary
	if summary == nil || len(summary.AllocatableModelings) == 0 || len(cluster.Spec.ResourceModels) == 0 {
		return nil, false
	}
	nodes := map[uint]int64{}
	for _, counted := range summary.AllocatableModelings {
		if counted.Count < 0 {
			return nil, false
		}
		nodes[counted.Grade] = int64(counted.Count)
	}
	for _, model := range cluster.Spec.ResourceModels {
		if nodes[model.Grade] == 0 {
			continue
		}
		least := map[corev1.ResourceName]int64{corev1.ResourcePods: podsPerNode}
		for _, reach := range model.Ranges {
			least[reach.Name] = amount(reach.Name, reach.Min)
		}
		grades = append(grades, grade{rank: model.Grade, nodes: nodes[model.Grade], free: least})
	}
	slices.SortFunc(grades, func(a, b grade) int { return cmp.Compare(a.rank, b.rank) })
	return grades, true
}

// nodeRequest is the part of a request that nodes can deny.
func nodeRequest(request map[corev1.ResourceName]int64) map[corev1.ResourceName]int64 {
	kept := maps.Clone(request)
	maps.DeleteFunc(kept, func(name corev1.ResourceName, _ int64) bool { return !onNodes(name) })
	return kept
}

// replicasOnModels counts replicas node by node: what is left over on each node is
// lost, which sums over all nodes do not see.
func replicasOnModels(cluster *clusterv1alpha1.Cluster, request map[corev1.ResourceName]int64) (int64, bool) {
	grades, ok := gradesOf(cluster)
	if !ok {
		return 0, false
	}
	request, total := nodeRequest(request), int64(0)
	for _, g := range grades {
		total = add(total, multiply(g.nodes, min(podsPerNode, timesIn(g.free, request))))
	}
	return total, true
}

// timesIn is how often the request fits into what is free.
func timesIn(free, request map[corev1.ResourceName]int64) int64 {
	most := int64(math.MaxInt64)
	for name, wanted := range request {
		most = min(most, max(0, free[name])/wanted)
	}
	return most
}
