package nodecapacity

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karmada.io/karmada/internal/domain/capacity"
)

// maxResources is the largest number of different resources that Nodes counts. No node has capacity
// of further resources. The constant limits the memory of a node.
const maxResources = 1024

// Nodes holds the nodes of a cluster and the sum of the requests of the Pods on each node. It stores
// a Pod as the node of the Pod and a reference to its request. It must not be used concurrently.
type Nodes struct {
	// positions are the positions of resources in the amounts of nodes. They never change.
	positions map[corev1.ResourceName]int
	table     *PodTable[nodeAmounts, *pooledRequest]
	// sorted are the existing nodes, sorted by name.
	sorted   []*nodeEntry
	requests requestPool
}

// nodeAmounts are the amounts of the resources of one node. The slices have the positions of Nodes,
// and may be shorter.
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

// position returns the position of a resource. ok is false if the resource is not counted.
func (n *Nodes) position(name corev1.ResourceName) (at int, ok bool) {
	if at, ok = n.positions[name]; !ok && len(n.positions) < maxResources {
		at, ok = len(n.positions), true
		n.positions[name] = at
	}
	return at, ok
}

// Counts returns the number of nodes, and the number of Pods on nodes.
func (n *Nodes) Counts() (nodes, pods int) {
	_, pods = n.table.Counts()
	return len(n.sorted), pods
}

// SetNode adds or updates a node.
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

// grow returns the slice with at least this length. New elements are 0.
func grow[Element any](slice []Element, length int) []Element {
	if missing := length - len(slice); missing > 0 {
		slice = append(slice, make([]Element, missing)...)
	}
	return slice
}

// RemoveNode removes a node. Pods on the node stay until they are removed.
func (n *Nodes) RemoveNode(name string) {
	if at, ok := slices.BinarySearchFunc(n.sorted, name, compareName); ok {
		entry := n.sorted[at]
		n.sorted = slices.Delete(n.sorted, at, at+1)
		entry.State.node, entry.State.allocatable = nil, nil
		n.table.RemoveNode(entry)
	}
}

func compareName(entry *nodeEntry, name string) int { return cmp.Compare(entry.Name, name) }

// SetPod adds or updates a Pod on a node. request is the result of RequestOf.
func (n *Nodes) SetPod(id PodID, node string, request Request) {
	n.table.SetPod(id, node, n.requests.intern(request))
}

// RemovePod removes a Pod that is deleted, has finished, or is on no node.
func (n *Nodes) RemovePod(id PodID) { n.table.RemovePod(id) }

// addRequest adds the request of a Pod to the sums of its node.
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

// Room returns the free amounts of these resources on all nodes, in the order of their names. It
// does not change when the nodes change.
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

// positionsOf returns the positions of the resources. The position of a resource that is not
// counted is -1.
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

// free returns the unused amount of the resource with this position, at least 0.
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

// total is a sum of non-negative numbers. It has 128 bits, so that subtraction is always the exact
// inverse of addition.
type total struct{ high, low uint64 }

func (t total) plus(value int64) total {
	low, carry := bits.Add64(t.low, uint64(value), 0) // a value is not negative
	return total{high: t.high + carry, low: low}
}

func (t total) minus(value int64) total {
	low, borrow := bits.Sub64(t.low, uint64(value), 0) // a value is not negative
	return total{high: t.high - borrow, low: low}
}

// remaining returns what remains of a non-negative number, at least 0.
func (t total) remaining(of int64) int64 {
	if t.high > 0 || t.low > math.MaxInt64 {
		return 0
	}
	return max(0, of-int64(t.low)) // bounded by the condition
}
