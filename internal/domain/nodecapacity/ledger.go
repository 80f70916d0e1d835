package nodecapacity

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karmada.io/karmada/internal/domain/packing"
)

// PodID identifies a Pod by a hash of its UID.
type PodID [16]byte

// maxResources is the largest number of different resources that a Ledger counts. No node has
// capacity of further resources. The constant limits the memory of a node.
const maxResources = 1024

// Ledger holds the nodes of a cluster and the sum of the requests of the Pods on each node. It
// stores a Pod as the node of the Pod and a reference to its request. It must not be used
// concurrently.
type Ledger struct {
	// positions are the positions of resources in the amounts of nodes. They never change.
	positions map[corev1.ResourceName]int
	entries   map[string]*nodeEntry
	// nodes are the entries of existing nodes, sorted by name.
	nodes    []*nodeEntry
	pods     map[PodID]podEntry
	requests requestPool
}

// nodeEntry is a node, or the name of a node that only Pods refer to so far.
type nodeEntry struct {
	name string
	// node is nil if the node does not exist.
	node *Node
	// allocatable and used have the positions of the ledger. They may be shorter.
	allocatable []int64
	used        []total
	pods        int64
}

type podEntry struct {
	node    *nodeEntry
	request *pooledRequest
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{positions: map[corev1.ResourceName]int{}, entries: map[string]*nodeEntry{}, pods: map[PodID]podEntry{}, requests: requestPool{}}
}

// position returns the position of a resource. ok is false if the ledger does not count it.
func (l *Ledger) position(name corev1.ResourceName) (at int, ok bool) {
	if at, ok = l.positions[name]; !ok && len(l.positions) < maxResources {
		at, ok = len(l.positions), true
		l.positions[name] = at
	}
	return at, ok
}

// Counts returns the number of nodes, and the number of Pods on nodes.
func (l *Ledger) Counts() (nodes, pods int) { return len(l.nodes), len(l.pods) }

// SetNode adds or updates a node.
func (l *Ledger) SetNode(node *Node) {
	entry := l.entry(node.Name())
	if entry.node == nil {
		at, _ := slices.BinarySearchFunc(l.nodes, entry.name, compareName)
		l.nodes = slices.Insert(l.nodes, at, entry)
	}
	entry.node, entry.allocatable = node, nil
	for name, value := range node.allocatable {
		if at, ok := l.position(name); ok {
			entry.allocatable = grow(entry.allocatable, at+1)
			entry.allocatable[at] = value
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

// RemoveNode removes a node. Pods on the node stay in the ledger until they are removed.
func (l *Ledger) RemoveNode(name string) {
	if at, ok := slices.BinarySearchFunc(l.nodes, name, compareName); ok {
		entry := l.nodes[at]
		l.nodes = slices.Delete(l.nodes, at, at+1)
		entry.node, entry.allocatable = nil, nil
		l.dropUnused(entry)
	}
}

func compareName(entry *nodeEntry, name string) int { return cmp.Compare(entry.name, name) }

// SetPod adds or updates a Pod on a node. request is the result of RequestOf.
func (l *Ledger) SetPod(id PodID, node string, request Request) {
	before, ok := l.pods[id]
	if ok && before.node.name == node && before.request.key == request.key {
		return
	}
	// The entry of the new node must be created before the Pod is removed from its old node, because
	// both may be the same node.
	entry, pooled := l.entry(node), l.requests.acquire(request)
	entry.pods++
	for name, value := range pooled.amounts {
		if at, ok := l.position(name); ok {
			entry.used = grow(entry.used, at+1)
			entry.used[at] = entry.used[at].plus(value)
		}
	}
	if ok {
		l.subtractPod(before)
	}
	l.pods[id] = podEntry{node: entry, request: pooled}
}

// RemovePod removes a Pod that is deleted, has finished, or is on no node.
func (l *Ledger) RemovePod(id PodID) {
	if pod, ok := l.pods[id]; ok {
		delete(l.pods, id)
		l.subtractPod(pod)
	}
}

func (l *Ledger) subtractPod(pod podEntry) {
	pod.node.pods--
	for name, value := range pod.request.amounts {
		if at, ok := l.position(name); ok {
			pod.node.used[at] = pod.node.used[at].minus(value)
		}
	}
	l.requests.release(pod.request)
	l.dropUnused(pod.node)
}

func (l *Ledger) entry(name string) *nodeEntry {
	entry, ok := l.entries[name]
	if !ok {
		entry = &nodeEntry{name: name}
		l.entries[name] = entry
	}
	return entry
}

func (l *Ledger) dropUnused(entry *nodeEntry) {
	if entry.node == nil && entry.pods == 0 {
		delete(l.entries, entry.name)
	}
}

// PruneNodes removes all nodes except those for which keep returns true.
func (l *Ledger) PruneNodes(keep func(name string) bool) {
	for _, entry := range slices.Clone(l.nodes) {
		if !keep(entry.name) {
			l.RemoveNode(entry.name)
		}
	}
}

// PrunePods removes all Pods except those for which keep returns true.
func (l *Ledger) PrunePods(keep func(id PodID) bool) {
	for id := range l.pods {
		if !keep(id) {
			l.RemovePod(id)
		}
	}
}

// Room returns the free amounts of these resources on all nodes, in the order of their names. It
// does not change when the ledger changes.
func (l *Ledger) Room(columns packing.Columns) *Room {
	room := &Room{columns: columns, nodes: make([]*Node, len(l.nodes)), free: make([]packing.Vector, len(l.nodes))}
	amounts, positions := make(packing.Vector, len(l.nodes)*len(columns)), l.positionsOf(columns)
	for i, entry := range l.nodes {
		room.nodes[i] = entry.node
		room.free[i], amounts = amounts[:len(columns):len(columns)], amounts[len(columns):]
		for column, at := range positions {
			room.free[i][column] = entry.free(at)
		}
		if column := slices.Index(columns, corev1.ResourcePods); column >= 0 {
			room.free[i][column] = max(0, room.free[i][column]-entry.pods)
		}
	}
	return room
}

// positionsOf returns the positions of the resources. The position of a resource that the ledger
// does not count is -1.
func (l *Ledger) positionsOf(columns packing.Columns) []int {
	positions := make([]int, len(columns))
	for column, name := range columns {
		at, ok := l.positions[name]
		if !ok {
			at = -1
		}
		positions[column] = at
	}
	return positions
}

// free returns the unused amount of the resource with this position, at least 0.
func (n *nodeEntry) free(at int) int64 {
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
