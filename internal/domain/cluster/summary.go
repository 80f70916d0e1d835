package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Node is what the summary of a member needs to know of one of its nodes.
type Node struct {
	Name        string
	Ready       bool
	Allocatable corev1.ResourceList
}

// Pod is what the summary needs to know of a Pod that has not finished.
type Pod struct {
	// Node is where it runs; empty while it waits for a node.
	Node string
	// Requests are the resources it asks for.
	Requests corev1.ResourceList
}

// Summarise counts nodes and adds up resources: what the nodes have, what Pods
// that run on them asked for, and what Pods ask for that still wait. models are
// the grades by which nodes are counted; none counts none.
func Summarise(nodes []Node, pods []Pod, models []clusterv1alpha1.ResourceModel) (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary) {
	count := &clusterv1alpha1.NodeSummary{}
	sum := &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{}, Allocated: corev1.ResourceList{}, Allocating: corev1.ResourceList{}}
	used := map[string]corev1.ResourceList{}
	for _, pod := range pods {
		into := sum.Allocating
		if pod.Node != "" {
			into = sum.Allocated
			if used[pod.Node] == nil {
				used[pod.Node] = corev1.ResourceList{}
			}
			addPod(used[pod.Node], pod.Requests)
		}
		addPod(into, pod.Requests)
	}
	free := make([]corev1.ResourceList, 0, len(nodes))
	for _, node := range nodes {
		count.TotalNum++
		if node.Ready {
			count.ReadyNum++
		}
		add(sum.Allocatable, node.Allocatable)
		free = append(free, subtract(node.Allocatable, used[node.Name]))
	}
	sum.AllocatableModelings = grade(free, models)
	return count, sum
}

func addPod(sum, requests corev1.ResourceList) {
	add(sum, requests)
	add(sum, corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)})
}

func add(sum, list corev1.ResourceList) {
	for name, quantity := range list {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

func subtract(from, list corev1.ResourceList) corev1.ResourceList {
	rest := from.DeepCopy()
	for name, quantity := range list {
		left, ok := rest[name]
		if !ok {
			continue
		}
		left.Sub(quantity)
		rest[name] = left
	}
	return rest
}

// grade counts nodes by the lowest grade that any of the modelled resources
// reaches, by what is free on them. A node without room for another Pod is not
// counted, nor is one that is overcommitted.
func grade(free []corev1.ResourceList, models []clusterv1alpha1.ResourceModel) []clusterv1alpha1.AllocatableModeling {
	if len(models) == 0 {
		return nil
	}
	counts := make([]clusterv1alpha1.AllocatableModeling, len(models))
	for i, model := range models {
		counts[i].Grade = model.Grade
	}
	for _, list := range free {
		if pods, ok := list[corev1.ResourcePods]; ok && pods.Sign() <= 0 {
			continue
		}
		if i := gradeOf(list, models); i >= 0 {
			counts[i].Count++
		}
	}
	return counts
}

func gradeOf(free corev1.ResourceList, models []clusterv1alpha1.ResourceModel) int {
	lowest := len(models) - 1
	for column, first := range models[0].Ranges {
		available := free[first.Name]
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
