package cluster

import (
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/nodecapacity"
)

// UsageCounter sums up the resources of a member's nodes and Pods while they are added and removed. It
// stores only the data that a summary needs: a few hundred bytes for each node, and for each Pod its
// node and a reference to its requests. The sums are exact at any time, regardless of the order in
// which events arrive. A UsageCounter is not safe for concurrent use.
type UsageCounter struct {
	table *nodecapacity.PodTable[nodeUsage, *InternedResources]
	// NodeLists contains the nodes' allocatable resources. PodLists contains the Pods' requests.
	NodeLists, PodLists ResourceListPool

	total, ready                       int32
	allocatable, allocated, allocating resourceTotals
	version                            uint64
}

// nodeUsage contains the counted values of a node and its Pods. allocatable is nil if the node does not
// exist.
type nodeUsage struct {
	ready       bool
	allocatable *InternedResources
	used        resourceTotals
}

type countedNode = nodecapacity.NodePods[nodeUsage]

// NewUsageCounter returns an empty counter.
func NewUsageCounter() *UsageCounter {
	u := &UsageCounter{NodeLists: newLists(), PodLists: newLists()}
	u.table = nodecapacity.NewPodTable(u.addRequests, u.subtractRequests)
	return u
}

// Version returns a number that increases with every change.
func (u *UsageCounter) Version() uint64 { return u.version }

// countChange increases the version if changed is true.
func (u *UsageCounter) countChange(changed bool) {
	if changed {
		u.version++
	}
}

// Counts returns the numbers of nodes and Pods.
func (u *UsageCounter) Counts() (nodes, pods int) { return u.table.Counts() }

// SetNode adds or updates a node.
func (u *UsageCounter) SetNode(name string, ready bool, allocatable *InternedResources) {
	node, isNew := u.table.AddNode(name)
	if !isNew && node.State.ready == ready && node.State.allocatable == allocatable {
		return
	}
	u.NodeLists.acquire(allocatable)
	u.subtractNode(node)
	node.State.ready, node.State.allocatable = ready, allocatable
	u.total++
	if ready {
		u.ready++
	}
	u.allocatable.add(allocatable)
	u.version++
}

// RemoveNode removes a node. Pods that still run on the node remain counted.
func (u *UsageCounter) RemoveNode(name string) {
	if node := u.table.FindNode(name); node != nil {
		u.removeNode(node)
	}
}

func (u *UsageCounter) removeNode(node *countedNode) {
	u.subtractNode(node)
	u.table.RemoveNode(node)
	u.version++
}

// subtractNode subtracts the node's values from the sums.
func (u *UsageCounter) subtractNode(node *countedNode) {
	if node.State.allocatable == nil {
		return
	}
	u.total--
	if node.State.ready {
		u.ready--
	}
	u.allocatable.subtract(node.State.allocatable)
	u.NodeLists.release(node.State.allocatable)
	node.State.ready, node.State.allocatable = false, nil
}

// SetPod adds or updates a Pod. node is empty until the Pod is scheduled.
func (u *UsageCounter) SetPod(id nodecapacity.PodID, node string, requests *InternedResources) {
	u.countChange(u.table.SetPod(id, node, requests))
}

// RemovePod removes a Pod that is deleted or has finished.
func (u *UsageCounter) RemovePod(id nodecapacity.PodID) { u.countChange(u.table.RemovePod(id)) }

// addRequests adds a Pod's requests to the sums. node is nil until the Pod is scheduled.
func (u *UsageCounter) addRequests(node *countedNode, requests *InternedResources) {
	u.PodLists.acquire(requests)
	if node == nil {
		u.allocating.add(requests)
		return
	}
	node.State.used.add(requests)
	u.allocated.add(requests)
}

// subtractRequests undoes addRequests.
func (u *UsageCounter) subtractRequests(node *countedNode, requests *InternedResources) {
	defer u.PodLists.release(requests)
	if node == nil {
		u.allocating.subtract(requests)
		return
	}
	node.State.used.subtract(requests)
	u.allocated.subtract(requests)
}

// PruneNodes removes all nodes except those for which keep returns true, and calls NodeLists.EndList.
// It must be called after all nodes in a new list were set.
func (u *UsageCounter) PruneNodes(keep func(name string) bool) {
	for node := range u.table.Nodes() {
		if !keep(node.Name) {
			u.removeNode(node)
		}
	}
	u.NodeLists.EndList()
}

// PrunePods removes all Pods except those for which keep returns true, and calls PodLists.EndList.
func (u *UsageCounter) PrunePods(keep func(id nodecapacity.PodID) bool) {
	u.countChange(u.table.PrunePods(keep))
	u.PodLists.EndList()
}

// Summary returns the number of nodes and the total resources: those that are allocatable on the nodes,
// those that Pods on nodes request, and those that Pods without a node request. models are the grades
// by which nodes are counted. Without models, nodes are not counted by grade.
func (u *UsageCounter) Summary(models []clusterv1alpha1.ResourceModel) (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary) {
	return &clusterv1alpha1.NodeSummary{TotalNum: u.total, ReadyNum: u.ready}, &clusterv1alpha1.ResourceSummary{
		Allocatable:          u.allocatable.resourceList(false),
		Allocated:            u.allocated.resourceList(true),
		Allocating:           u.allocating.resourceList(true),
		AllocatableModelings: u.countByGrade(models),
	}
}
