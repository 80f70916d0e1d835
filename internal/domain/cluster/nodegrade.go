package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// countByGrade returns the number of nodes in each grade, according to their free resources. A node has
// a grade for each of the models' resources, and the lowest of these is the node's grade. Nodes that
// are full or overcommitted are not counted.
func (u *UsageCounter) countByGrade(models []clusterv1alpha1.ResourceModel) []clusterv1alpha1.AllocatableModeling {
	if len(models) == 0 {
		return nil
	}
	counts := make([]clusterv1alpha1.AllocatableModeling, len(models))
	for i, model := range models {
		counts[i].Grade = model.Grade
	}
	for node := range u.table.Nodes() {
		if node.State.isFull() {
			continue
		}
		if i := node.State.gradeOf(models); i >= 0 {
			counts[i].Count++
		}
	}
	return counts
}

// isFull reports whether the node accepts no more Pods. A node that does not report its number
// of Pods is never full.
func (n *nodeUsage) isFull() bool {
	free, ok := n.free(corev1.ResourcePods)
	return ok && free.Sign() <= 0
}

// free returns how much of a resource the node's Pods did not request. Each Pod uses one of the
// resource pods. If the node does not have the resource, ok is false and rest is 0.
func (n *nodeUsage) free(name corev1.ResourceName) (rest resource.Quantity, ok bool) {
	for i := range n.allocatable.entries {
		entry := &n.allocatable.entries[i]
		if entry.name != name {
			continue
		}
		rest = entry.quantity.DeepCopy()
		rest.Sub(n.used.quantityOf(name))
		if name == corev1.ResourcePods {
			rest.Sub(*resource.NewQuantity(n.used.count, resource.DecimalSI))
		}
		return rest, true
	}
	return rest, false
}

func (n *nodeUsage) gradeOf(models []clusterv1alpha1.ResourceModel) int {
	lowest := len(models) - 1
	for column, resourceRange := range models[0].Ranges {
		available, _ := n.free(resourceRange.Name)
		reached := -1
		for i, model := range models {
			if column < len(model.Ranges) && model.Ranges[column].Min.Cmp(available) <= 0 {
				reached = i
			}
		}
		lowest = min(lowest, reached)
	}
	return lowest
}
