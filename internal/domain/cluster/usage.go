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
func (u *UsageCounter) Version() uint64 { return u.version }

// Counts returns the number of nodes and Pods.
func (u *UsageCounter) Counts() (nodes, pods int) { return len(u.nodes), len(u.pods) }

// SetNode adds or updates a node.
func (u *UsageCounter) SetNode(name string, ready bool, allocatable *InternedResources) {
	node := u.nodeEntry(name)
	if node.observed && node.ready == ready && node.allocatable == allocatable {
		return
	}
	u.NodeLists.acquire(allocatable)
	u.subtractNode(node)
	node.observed, node.ready, node.allocatable = true, ready, allocatable
	u.total++
	if ready {
		u.ready++
	}
	u.allocatable.add(allocatable)
	u.version++
}

// RemoveNode removes a node. Pods that still run on the node are still counted.
func (u *UsageCounter) RemoveNode(name string) {
	node, ok := u.nodes[name]
	if !ok || !node.observed {
		return
	}
	u.subtractNode(node)
	u.dropUnused(node)
	u.version++
}

// subtractNode subtracts a node from the sums.
func (u *UsageCounter) subtractNode(node *countedNode) {
	if !node.observed {
		return
	}
	u.total--
	if node.ready {
		u.ready--
	}
	u.allocatable.subtract(node.allocatable)
	u.NodeLists.release(node.allocatable)
	node.observed, node.ready, node.allocatable = false, false, nil
}

// SetPod adds or updates a Pod. node is empty until the Pod is scheduled.
func (u *UsageCounter) SetPod(id PodID, node string, requests *InternedResources) {
	before, ok := u.pods[id]
	if ok && before.requests == requests && before.nodeName() == node {
		return
	}
	u.PodLists.acquire(requests)
	var on *countedNode
	if node != "" {
		// The entry of the new node must be created before the Pod is removed from its old node,
		// because both may be the same node.
		on = u.nodeEntry(node)
		on.pods++
	}
	if ok {
		u.subtractPod(before)
	}
	u.pods[id] = countedPod{node: on, requests: requests}
	if on == nil {
		u.allocating.add(requests)
	} else {
		on.used.add(requests)
		u.allocated.add(requests)
	}
	u.version++
}

// RemovePod removes a Pod that is deleted or has finished.
func (u *UsageCounter) RemovePod(id PodID) {
	if pod, ok := u.pods[id]; ok {
		delete(u.pods, id)
		u.subtractPod(pod)
		u.version++
	}
}

func (u *UsageCounter) subtractPod(pod countedPod) {
	defer u.PodLists.release(pod.requests)
	if pod.node == nil {
		u.allocating.subtract(pod.requests)
		return
	}
	pod.node.used.subtract(pod.requests)
	u.allocated.subtract(pod.requests)
	pod.node.pods--
	u.dropUnused(pod.node)
}

func (c countedPod) nodeName() string {
	if c.node == nil {
		return ""
	}
	return c.node.name
}

func (u *UsageCounter) nodeEntry(name string) *countedNode {
	node, ok := u.nodes[name]
	if !ok {
		node = &countedNode{name: name}
		u.nodes[name] = node
	}
	return node
}

// dropUnused removes the entry of a node to which neither a node nor a Pod refers anymore.
func (u *UsageCounter) dropUnused(node *countedNode) {
	if !node.observed && node.pods == 0 {
		delete(u.nodes, node.name)
	}
}

// PruneNodes removes all nodes except those for which keep returns true, and calls
// NodeLists.EndList. It is called after all nodes of a new list were set.
func (u *UsageCounter) PruneNodes(keep func(name string) bool) {
	for name := range u.nodes {
		if !keep(name) {
			u.RemoveNode(name)
		}
	}
	u.NodeLists.EndList()
}

// PrunePods removes all Pods except those for which keep returns true, and calls PodLists.EndList.
func (u *UsageCounter) PrunePods(keep func(id PodID) bool) {
	for id := range u.pods {
		if !keep(id) {
			u.RemovePod(id)
		}
	}
	u.PodLists.EndList()
}

// Summary returns the number of nodes and the totals of resources: the resources that are
// allocatable on the nodes, that Pods on nodes request, and that Pods without a node request.
// models are the grades by which nodes are counted; without models nodes are not counted by grade.
func (u *UsageCounter) Summary(models []clusterv1alpha1.ResourceModel) (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary) {
	return &clusterv1alpha1.NodeSummary{TotalNum: u.total, ReadyNum: u.ready}, &clusterv1alpha1.ResourceSummary{
		Allocatable:          u.allocatable.resourceList(false),
		Allocated:            u.allocated.resourceList(true),
		Allocating:           u.allocating.resourceList(true),
		AllocatableModelings: u.countByGrade(models),
	}
}
