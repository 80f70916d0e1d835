package cluster

import (
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// PodID tells Pods apart: the fingerprint of a uid.
type PodID [16]byte

// Tally counts the nodes and Pods of a member as they come and go. It holds what a
// summary needs and no more: some hundred bytes of a node, and of a Pod where it
// runs and which of the known requests it makes. Its sums are exact at any time,
// whatever the order in which things were told. It is not for concurrent use.
type Tally struct {
	nodes map[string]*tallied
	pods  map[PodID]placed
	// NodeLists are what nodes offer, PodLists what Pods want.
	NodeLists, PodLists Lists

	total, ready                       int32
	allocatable, allocated, allocating sums
	version                            uint64
}

// tallied is a node, or the name of one of which only Pods have told yet.
type tallied struct {
	name        string
	known       bool
	ready       bool
	allocatable *Amounts
	used        sums
	pods        int
}

// placed is a Pod; node is nil while it waits for one.
type placed struct {
	node     *tallied
	requests *Amounts
}

// NewTally makes an empty one.
func NewTally() *Tally {
	return &Tally{nodes: map[string]*tallied{}, pods: map[PodID]placed{}, NodeLists: newLists(), PodLists: newLists()}
}

// Version grows with every change.
func (t *Tally) Version() uint64 { return t.version }

// Counted returns how many nodes and Pods are counted.
func (t *Tally) Counted() (nodes, pods int) { return len(t.nodes), len(t.pods) }

// SetNode tells of a node that is new, or changed.
func (t *Tally) SetNode(name string, ready bool, allocatable *Amounts) {
	node := t.node(name)
	if node.known && node.ready == ready && node.allocatable == allocatable {
		return
	}
	t.NodeLists.use(allocatable)
	t.forgetNode(node)
	node.known, node.ready, node.allocatable = true, ready, allocatable
	t.total++
	if ready {
		t.ready++
	}
	t.allocatable.add(allocatable)
	t.version++
}

// RemoveNode tells that a node is gone. Pods that still run on it count on.
func (t *Tally) RemoveNode(name string) {
	node, ok := t.nodes[name]
	if !ok || !node.known {
		return
	}
	t.forgetNode(node)
	t.drop(node)
	t.version++
}

// forgetNode takes what is known of a node out of the sums.
func (t *Tally) forgetNode(node *tallied) {
	if !node.known {
		return
	}
	t.total--
	if node.ready {
		t.ready--
	}
	t.allocatable.subtract(node.allocatable)
	t.NodeLists.release(node.allocatable)
	node.known, node.ready, node.allocatable = false, false, nil
}

// SetPod tells of a Pod that is new, or changed. node is empty while it waits for
// one.
func (t *Tally) SetPod(id PodID, node string, requests *Amounts) {
	before, ok := t.pods[id]
	if ok && before.requests == requests && before.nodeName() == node {
		return
	}
	t.PodLists.use(requests)
	var on *tallied
	if node != "" {
		// Before the Pod is taken off its node, which may be the same.
		on = t.node(node)
		on.pods++
	}
	if ok {
		t.forgetPod(before)
	}
	t.pods[id] = placed{node: on, requests: requests}
	if on == nil {
		t.allocating.add(requests)
	} else {
		on.used.add(requests)
		t.allocated.add(requests)
	}
	t.version++
}

// RemovePod tells that a Pod is gone, or has finished.
func (t *Tally) RemovePod(id PodID) {
	if pod, ok := t.pods[id]; ok {
		delete(t.pods, id)
		t.forgetPod(pod)
		t.version++
	}
}

func (t *Tally) forgetPod(pod placed) {
	defer t.PodLists.release(pod.requests)
	if pod.node == nil {
		t.allocating.subtract(pod.requests)
		return
	}
	pod.node.used.subtract(pod.requests)
	t.allocated.subtract(pod.requests)
	pod.node.pods--
	t.drop(pod.node)
}

func (p placed) nodeName() string {
	if p.node == nil {
		return ""
	}
	return p.node.name
}

func (t *Tally) node(name string) *tallied {
	node, ok := t.nodes[name]
	if !ok {
		node = &tallied{name: name}
		t.nodes[name] = node
	}
	return node
}

// drop forgets a name that nobody tells of any more.
func (t *Tally) drop(node *tallied) {
	if !node.known && node.pods == 0 {
		delete(t.nodes, node.name)
	}
}

// KeepNodes forgets all nodes but those; KeepPods does so of Pods. They are for a
// new list, whose members are told one by one besides.
func (t *Tally) KeepNodes(keep func(name string) bool) {
	for name := range t.nodes {
		if !keep(name) {
			t.RemoveNode(name)
		}
	}
	t.NodeLists.End()
}

// KeepPods is told of at KeepNodes.
func (t *Tally) KeepPods(keep func(id PodID) bool) {
	for id := range t.pods {
		if !keep(id) {
			t.RemovePod(id)
		}
	}
	t.PodLists.End()
}

// Summary counts nodes and adds up resources: what the nodes have, what Pods that
// run on them asked for, and what Pods ask for that still wait. models are the
// grades by which nodes are counted; none counts none.
func (t *Tally) Summary(models []clusterv1alpha1.ResourceModel) (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary) {
	return &clusterv1alpha1.NodeSummary{TotalNum: t.total, ReadyNum: t.ready}, &clusterv1alpha1.ResourceSummary{
		Allocatable:          t.allocatable.list(false),
		Allocated:            t.allocated.list(true),
		Allocating:           t.allocating.list(true),
		AllocatableModelings: t.grades(models),
	}
}
