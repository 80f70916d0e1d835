package nodecapacity

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karmada.io/karmada/internal/domain/capacity"
)

// maxResources is the maximum number of different resources that Nodes counts, which bounds its memory.
// Further resources count as unavailable.
const maxResources = 1024

// Nodes holds a cluster's nodes and the sum of the Pods' requests on each node. For a Pod, it stores only
// the node and a reference to the request. It is not safe for concurrent use.
type Nodes struct {
	// positions holds each resource's index in nodeAmounts. An index never changes.
	positions map[corev1.ResourceName]int
	table     *PodTable[nodeAmounts, *pooledRequest]
	// sorted holds the existing nodes, sorted by name.
	sorted   []*nodeEntry
	requests requestPool
}

// nodeAmounts holds a node's resource amounts, at the positions of Nodes. The slices may be shorter.
type nodeAmounts struct {
	// node is nil if the node does not exist.
	node        *Node
	allocatable []int64
	used        []total
}

type nodeEntry = NodePods[nodeAmounts]

// NewNodes returns an empty set of nodes.
func NewNodes() *Nodes {
	n := &Nodes{positions: map[corev1.ResourceName]int{}, requests: requestPool{}}
	n.table = NewPodTable(n.addRequest, n.subtractRequest)
	return n
}

// position returns the resource's position. ok is false if the resource is not counted.
func (n *Nodes) position(name corev1.ResourceName) (at int, ok bool) {
	if at, ok = n.positions[name]; !ok && len(n.positions) < maxResources {
		at, ok = len(n.positions), true
		n.positions[name] = at
	}
	return at, ok
}

// Counts returns the numbers of nodes and of Pods on nodes.
func (n *Nodes) Counts() (nodes, pods int) {
	_, pods = n.table.Counts()
	return len(n.sorted), pods
}

// SetNode adds or updates the node.
func (n *Nodes) SetNode(node *Node) {
	entry, isNew := n.table.AddNode(node.Name())
	if isNew {
		at, _ := slices.BinarySearchFunc(n.sorted, entry.Name, compareName)
		n.sorted = slices.Insert(n.sorted, at, entry)
	}
	entry.State.node, entry.State.allocatable = node, nil
	for name, value := range node.allocatable {
		if at, ok := n.position(name); ok {
			entry.State.allocatable = grow(entry.State.allocatable, at+1)
			entry.State.allocatable[at] = value
		}
	}
}

// grow returns the slice with at least the given length. New elements are zero.
func grow[Element any](slice []Element, length int) []Element {
	if missing := length - len(slice); missing > 0 {
		slice = append(slice, make([]Element, missing)...)
	}
	return slice
}

// RemoveNode removes the node. Pods on the node stay until they are removed.
func (n *Nodes) RemoveNode(name string) {
	if at, ok := slices.BinarySearchFunc(n.sorted, name, compareName); ok {
		entry := n.sorted[at]
		n.sorted = slices.Delete(n.sorted, at, at+1)
		entry.State.node, entry.State.allocatable = nil, nil
		n.table.RemoveNode(entry)
	}
}

func compareName(entry *nodeEntry, name string) int { return cmp.Compare(entry.Name, name) }

// SetPod adds or updates a Pod on the node. request is the result of RequestOf.
func (n *Nodes) SetPod(id PodID, node string, request Request) {
	n.table.SetPod(id, node, n.requests.intern(request))
}

// RemovePod removes a Pod that is deleted, has finished, or is on no node.
func (n *Nodes) RemovePod(id PodID) { n.table.RemovePod(id) }

// addRequest adds a Pod's request to the sums of its node.
func (n *Nodes) addRequest(node *nodeEntry, request *pooledRequest) {
	n.requests.acquire(request)
	for name, value := range request.amounts {
		if at, ok := n.position(name); ok {
			node.State.used = grow(node.State.used, at+1)
			node.State.used[at] = node.State.used[at].plus(value)
		}
	}
}

// subtractRequest reverses addRequest.
func (n *Nodes) subtractRequest(node *nodeEntry, request *pooledRequest) {
	for name, value := range request.amounts {
		if at, ok := n.position(name); ok {
			node.State.used[at] = node.State.used[at].minus(value)
		}
	}
	n.requests.release(request)
}

// PruneNodes removes all nodes except those for which keep returns true.
func (n *Nodes) PruneNodes(keep func(name string) bool) {
	for _, entry := range slices.Clone(n.sorted) {
		if !keep(entry.Name) {
			n.RemoveNode(entry.Name)
		}
	}
}

// PrunePods removes all Pods except those for which keep returns true.
func (n *Nodes) PrunePods(keep func(id PodID) bool) { n.table.PrunePods(keep) }

// Room returns the free amounts of the given resources on all nodes, sorted by node name. Later changes
// of the nodes do not affect it.
func (n *Nodes) Room(columns capacity.ResourceColumns) *Room {
	room := &Room{columns: columns, nodes: make([]*Node, len(n.sorted)), free: make([]capacity.ResourceVector, len(n.sorted))}
	amounts, positions := make(capacity.ResourceVector, len(n.sorted)*len(columns)), n.positionsOf(columns)
	for i, entry := range n.sorted {
		room.nodes[i] = entry.State.node
		room.free[i], amounts = amounts[:len(columns):len(columns)], amounts[len(columns):]
		for column, at := range positions {
			room.free[i][column] = entry.State.free(at)
		}
		if column := slices.Index(columns, corev1.ResourcePods); column >= 0 {
			room.free[i][column] = max(0, room.free[i][column]-entry.Pods())
		}
	}
	return room
}

// positionsOf returns the positions of the resources, or -1 for a resource that is not counted.
func (n *Nodes) positionsOf(columns capacity.ResourceColumns) []int {
	positions := make([]int, len(columns))
	for column, name := range columns {
		at, ok := n.positions[name]
		if !ok {
			at = -1
		}
		positions[column] = at
	}
	return positions
}

// free returns the unused amount, at least 0, of the resource at the given position.
func (n *nodeAmounts) free(at int) int64 {
	switch {
	case at < 0 || at >= len(n.allocatable):
		return 0
	case at >= len(n.used):
		return n.allocatable[at]
	default:
		return n.used[at].remaining(n.allocatable[at])
	}
}

// total is a 128-bit sum of non-negative numbers, for which subtraction is always the exact inverse of
// addition.
type total struct{ high, low uint64 }

func (t total) plus(value int64) total {
	low, carry := bits.Add64(t.low, uint64(value), 0) // a value is not negative
	return total{high: t.high + carry, low: low}
}

func (t total) minus(value int64) total {
	low, borrow := bits.Sub64(t.low, uint64(value), 0) // a value is not negative
	return total{high: t.high - borrow, low: low}
}

// remaining returns the given non-negative number minus the total, or 0 if the total is greater.
func (t total) remaining(of int64) int64 {
	if t.high > 0 || t.low > math.MaxInt64 {
		return 0
	}
	return max(0, of-int64(t.low)) // bounded by the condition
}
