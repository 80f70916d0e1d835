package cluster

import (
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// PodID identifies a Pod by a hash of its UID.
type PodID [16]byte

// UsageCounter sums up the resources of the nodes and Pods of a member while they are added and
// removed. It holds only the data that a summary needs: a few hundred bytes for a node, and for a
// Pod its node and a reference to its requests. The sums are exact at any time, in whatever order
// events arrive. It must not be used concurrently.
type UsageCounter struct {
	nodes map[string]*countedNode
	pods  map[PodID]countedPod
	// NodeLists holds the allocatable resources of nodes. PodLists holds the requests of Pods.
	NodeLists, PodLists ResourceListPool

	total, ready                       int32
	allocatable, allocated, allocating resourceTotals
	version                            uint64
}

// countedNode is a node, or the name of a node that only Pods refer to so far.
type countedNode struct {
	name        string
	observed    bool
	ready       bool
	allocatable *InternedResources
	used        resourceTotals
	pods        int
}

// countedPod is a Pod. node is nil until the Pod is scheduled.
type countedPod struct {
	node     *countedNode
	requests *InternedResources
}

// NewUsageCounter returns an empty counter.
func NewUsageCounter() *UsageCounter {
	return &UsageCounter{nodes: map[string]*countedNode{}, pods: map[PodID]countedPod{}, NodeLists: newLists(), PodLists: newLists()}
}

// Version returns a number that increases with every change.
func (t *UsageCounter) Version() uint64 { return t.version }

// Counts returns the number of nodes and Pods.
func (t *UsageCounter) Counts() (nodes, pods int) { return len(t.nodes), len(t.pods) }

// SetNode adds or updates a node.
func (t *UsageCounter) SetNode(name string, ready bool, allocatable *InternedResources) {
	node := t.nodeEntry(name)
	if node.observed && node.ready == ready && node.allocatable == allocatable {
		return
	}
	t.NodeLists.acquire(allocatable)
	t.subtractNode(node)
	node.observed, node.ready, node.allocatable = true, ready, allocatable
	t.total++
	if ready {
		t.ready++
	}
	t.allocatable.add(allocatable)
	t.version++
}

// RemoveNode removes a node. Pods that still run on the node are still counted.
func (t *UsageCounter) RemoveNode(name string) {
	node, ok := t.nodes[name]
	if !ok || !node.observed {
		return
	}
	t.subtractNode(node)
	t.dropUnused(node)
	t.version++
}

// subtractNode subtracts a node from the sums.
func (t *UsageCounter) subtractNode(node *countedNode) {
	if !node.observed {
		return
	}
	t.total--
	if node.ready {
		t.ready--
	}
	t.allocatable.subtract(node.allocatable)
	t.NodeLists.release(node.allocatable)
	node.observed, node.ready, node.allocatable = false, false, nil
}

// SetPod adds or updates a Pod. node is empty until the Pod is scheduled.
func (t *UsageCounter) SetPod(id PodID, node string, requests *InternedResources) {
	before, ok := t.pods[id]
	if ok && before.requests == requests && before.nodeName() == node {
		return
	}
	t.PodLists.acquire(requests)
	var on *countedNode
	if node != "" {
		// The entry of the new node must be created before the Pod is removed from its old node,
		// because both may be the same node.
		on = t.nodeEntry(node)
		on.pods++
	}
	if ok {
		t.subtractPod(before)
	}
	t.pods[id] = countedPod{node: on, requests: requests}
	if on == nil {
		t.allocating.add(requests)
	} else {
		on.used.add(requests)
		t.allocated.add(requests)
	}
	t.version++
}

// RemovePod removes a Pod that is deleted or has finished.
func (t *UsageCounter) RemovePod(id PodID) {
	if pod, ok := t.pods[id]; ok {
		delete(t.pods, id)
		t.subtractPod(pod)
		t.version++
	}
}

func (t *UsageCounter) subtractPod(pod countedPod) {
	defer t.PodLists.release(pod.requests)
	if pod.node == nil {
		t.allocating.subtract(pod.requests)
		return
	}
	pod.node.used.subtract(pod.requests)
	t.allocated.subtract(pod.requests)
	pod.node.pods--
	t.dropUnused(pod.node)
}

func (p countedPod) nodeName() string {
	if p.node == nil {
		return ""
	}
	return p.node.name
}

func (t *UsageCounter) nodeEntry(name string) *countedNode {
	node, ok := t.nodes[name]
	if !ok {
		node = &countedNode{name: name}
		t.nodes[name] = node
	}
	return node
}

// dropUnused removes the entry of a node to which neither a node nor a Pod refers anymore.
func (t *UsageCounter) dropUnused(node *countedNode) {
	if !node.observed && node.pods == 0 {
		delete(t.nodes, node.name)
	}
}

// PruneNodes removes all nodes except those for which keep returns true, and calls
// NodeLists.EndList. It is called after all nodes of a new list were set.
func (t *UsageCounter) PruneNodes(keep func(name string) bool) {
	for name := range t.nodes {
		if !keep(name) {
			t.RemoveNode(name)
		}
	}
	t.NodeLists.EndList()
}

// PrunePods removes all Pods except those for which keep returns true, and calls PodLists.EndList.
func (t *UsageCounter) PrunePods(keep func(id PodID) bool) {
	for id := range t.pods {
		if !keep(id) {
			t.RemovePod(id)
		}
	}
	t.PodLists.EndList()
}

// Summary returns the number of nodes and the totals of resources: the resources that are
// allocatable on the nodes, that Pods on nodes request, and that Pods without a node request.
// models are the grades by which nodes are counted; without models nodes are not counted by grade.
func (t *UsageCounter) Summary(models []clusterv1alpha1.ResourceModel) (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary) {
	return &clusterv1alpha1.NodeSummary{TotalNum: t.total, ReadyNum: t.ready}, &clusterv1alpha1.ResourceSummary{
		Allocatable:          t.allocatable.resourceList(false),
		Allocated:            t.allocated.resourceList(true),
		Allocating:           t.allocating.resourceList(true),
		AllocatableModelings: t.countByGrade(models),
	}
}
