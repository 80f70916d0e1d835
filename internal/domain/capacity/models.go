package capacity

import (
	"cmp"
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
			least[modelRange.Name] = ResourceAmount(modelRange.Name, modelRange.Min)
		}
		grades = append(grades, grade{number: model.Grade, nodes: nodes[model.Grade], free: least})
	}
	slices.SortFunc(grades, func(a, b grade) int { return cmp.Compare(a.number, b.number) })
	return grades, true
}

// countReplicas returns how many replicas fit onto the nodes of all grades. Unlike a sum over all
// nodes, the result does not include free resources on a node that are too small for a whole
// replica.
func countReplicas(grades []grade, columns ResourceColumns, request ResourceVector) int64 {
	total := int64(0)
	for _, g := range grades {
		total = SaturatingAdd(total, SaturatingMultiply(g.nodes, columns.Vector(g.free).Fits(request)))
	}
	return total
}
