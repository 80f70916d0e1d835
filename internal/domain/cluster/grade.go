package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// grades counts nodes by the lowest grade that any of the modelled resources
// reaches, by what is free on them. A node without room for another Pod is not
// counted, nor is one that is overcommitted.
func (t *Tally) grades(models []clusterv1alpha1.ResourceModel) []clusterv1alpha1.AllocatableModeling {
	if len(models) == 0 {
		return nil
	}
	counts := make([]clusterv1alpha1.AllocatableModeling, len(models))
	for i, model := range models {
		counts[i].Grade = model.Grade
	}
	for _, node := range t.nodes {
		if !node.known || node.full() {
			continue
		}
		if i := node.grade(models); i >= 0 {
			counts[i].Count++
		}
	}
	return counts
}

// full tells that the node takes no more Pods. One that does not say how many it
// takes is never full.
func (n *tallied) full() bool {
	free, ok := n.free(corev1.ResourcePods)
	return ok && free.Sign() <= 0
}

// free is what the node has of a resource beyond what its Pods asked for, each Pod
// taking one of the Pods; ok is false, and the rest 0, if it has none.
func (n *tallied) free(name corev1.ResourceName) (rest resource.Quantity, ok bool) {
	for i := range n.allocatable.entries {
		entry := &n.allocatable.entries[i]
		if entry.name != name {
			continue
		}
		rest = entry.quantity.DeepCopy()
		rest.Sub(n.used.of(name))
		if name == corev1.ResourcePods {
			rest.Sub(*resource.NewQuantity(n.used.things, resource.DecimalSI))
		}
		return rest, true
	}
	return rest, false
}

func (n *tallied) grade(models []clusterv1alpha1.ResourceModel) int {
	lowest := len(models) - 1
	for column, first := range models[0].Ranges {
		available, _ := n.free(first.Name)
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
