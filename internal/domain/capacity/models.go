package capacity

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// podsPerNode is the default limit of Pods on a node in Kubernetes. It is needed because grades do
// not report how many Pods fit onto their nodes.
const podsPerNode = 110

// grade is a number of nodes. Each of these nodes has at least the resources in free.
type grade struct {
	number uint
	nodes  int64
	free   map[corev1.ResourceName]int64
}

// nodeGrades returns the grades of the cluster that have nodes, lowest first. ok is false if the
// status of the cluster is not sufficient to use grades.
func nodeGrades(cluster *clusterv1alpha1.Cluster) (grades []grade, ok bool) {
	summary := cluster.Status.ResourceSummary
	if summary == nil || len(summary.AllocatableModelings) == 0 || len(cluster.Spec.ResourceModels) == 0 {
		return nil, false
	}
	nodes := map[uint]int64{}
	for _, modeling := range summary.AllocatableModelings {
		if modeling.Count < 0 {
			return nil, false
		}
		nodes[modeling.Grade] = int64(modeling.Count)
	}
	for _, model := range cluster.Spec.ResourceModels {
		if nodes[model.Grade] == 0 {
			continue
		}
		least := map[corev1.ResourceName]int64{corev1.ResourcePods: podsPerNode}
		for _, modelRange := range model.Ranges {
			least[modelRange.Name] = amount(modelRange.Name, modelRange.Min)
		}
		grades = append(grades, grade{number: model.Grade, nodes: nodes[model.Grade], free: least})
	}
	slices.SortFunc(grades, func(a, b grade) int { return cmp.Compare(a.number, b.number) })
	return grades, true
}

// nodeRequest returns the part of a request that consumes resources of nodes.
func nodeRequest(request map[corev1.ResourceName]int64) map[corev1.ResourceName]int64 {
	kept := maps.Clone(request)
	maps.DeleteFunc(kept, func(name corev1.ResourceName, _ int64) bool { return !isNodeResource(name) })
	return kept
}

// replicasByGrade counts the replicas that fit onto each node. Unlike a sum over all nodes, the
// result does not include free resources on a node that are too small for a whole replica.
func replicasByGrade(cluster *clusterv1alpha1.Cluster, request map[corev1.ResourceName]int64) (int64, bool) {
	grades, ok := nodeGrades(cluster)
	if !ok {
		return 0, false
	}
	request, total := nodeRequest(request), int64(0)
	for _, g := range grades {
		total = addSaturated(total, multiplySaturated(g.nodes, min(podsPerNode, countFitsOnNode(g.free, request))))
	}
	return total, true
}

// countFitsOnNode returns how many times the request fits into the free resources of a node.
func countFitsOnNode(free, request map[corev1.ResourceName]int64) int64 {
	count := int64(math.MaxInt64)
	for name, requested := range request {
		count = min(count, max(0, free[name])/requested)
	}
	return count
}
