package nodecapacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/domain/capacity"
)

// Node holds the part of a node that determines which and how many Pods fit onto it. It is immutable.
type Node struct {
	// identity has only the name and the labels of the node.
	identity corev1.Node
	// taints are the taints that a Pod must tolerate to be scheduled to the node.
	taints []corev1.Taint
	// allocatable contains only positive amounts.
	allocatable map[corev1.ResourceName]int64
}

// NewNode returns the relevant part of the node. It shares only the labels with the node.
func NewNode(node *corev1.Node) *Node {
	n := &Node{identity: corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}}
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute {
			n.taints = append(n.taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
		}
	}
	unschedulable := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if node.Spec.Unschedulable && !slices.Contains(n.taints, unschedulable) {
		n.taints = append(n.taints, unschedulable)
	}
	n.allocatable = capacity.ResourceAmounts(node.Status.Allocatable)
	for name := range n.allocatable {
		if !capacity.IsNodeResource(name) {
			delete(n.allocatable, name)
		}
	}
	return n
}

// Name returns the node's name.
func (n *Node) Name() string { return n.identity.Name }
