// Package nodepods answers "which Pods are on which node?" while events of nodes and Pods arrive in
// any order.
//
// A Table stores only a few values for each Pod: the node of the Pod and its request. The owner of a
// Table decides what a node and a request are, and keeps sums. The Table calls the owner exactly once
// when a Pod comes to a node, and exactly once when the Pod leaves the node, with the same request.
package nodepods

import (
	"hash/fnv"
	"iter"

	"k8s.io/apimachinery/pkg/types"
)

// PodID identifies a Pod by a hash of its UID, which needs less memory than the UID.
type PodID [16]byte

// IDOf returns the ID of the Pod with this UID.
func IDOf(uid types.UID) (id PodID) {
	hash := fnv.New128a()
	_, _ = hash.Write([]byte(uid))
	hash.Sum(id[:0])
	return id
}

// Node is a node, or the name of a node that only Pods refer to so far.
type Node[State any] struct {
	Name string
	// Exists reports whether the node itself was added, and not removed since.
	Exists bool
	// State belongs to the owner of the Table. It is kept while the node exists or has Pods.
	State State

	pods int64
}

// Pods returns the number of Pods on the node.
func (n *Node[State]) Pods() int64 { return n.pods }

// Table holds nodes and Pods. It must not be used concurrently.
type Table[State any, Request comparable] struct {
	nodes          map[string]*Node[State]
	pods           map[PodID]pod[State, Request]
	added, removed PodFunc[State, Request]
}

// pod is a Pod. node is nil until the Pod is scheduled.
type pod[State any, Request comparable] struct {
	node    *Node[State]
	request Request
}

func (p pod[State, Request]) nodeName() string {
	if p.node == nil {
		return ""
	}
	return p.node.Name
}

// PodFunc is called for a Pod that comes to a node or leaves a node. node is nil for a Pod that is
// not scheduled.
type PodFunc[State any, Request comparable] func(node *Node[State], request Request)

// New returns an empty table that calls the functions of its owner.
func New[State any, Request comparable](added, removed PodFunc[State, Request]) *Table[State, Request] {
	return &Table[State, Request]{nodes: map[string]*Node[State]{}, pods: map[PodID]pod[State, Request]{}, added: added, removed: removed}
}

// AddNode returns the node with this name and marks it as existing. isNew reports whether the node
// did not exist before.
func (t *Table[State, Request]) AddNode(name string) (node *Node[State], isNew bool) {
	node = t.entry(name)
	isNew, node.Exists = !node.Exists, true
	return node, isNew
}

// FindNode returns the existing node with this name, or nil.
func (t *Table[State, Request]) FindNode(name string) *Node[State] {
	if node := t.nodes[name]; node != nil && node.Exists {
		return node
	}
	return nil
}

// RemoveNode marks a node as not existing. Pods on the node stay in the table until they are
// removed.
func (t *Table[State, Request]) RemoveNode(node *Node[State]) {
	node.Exists = false
	t.dropUnused(node)
}

// Nodes returns the existing nodes in any order. The caller may remove nodes meanwhile.
func (t *Table[State, Request]) Nodes() iter.Seq[*Node[State]] {
	return func(yield func(*Node[State]) bool) {
		for _, node := range t.nodes {
			if node.Exists && !yield(node) {
				return
			}
		}
	}
}

// Counts returns the number of Pods, and the number of nodes that exist or have Pods.
func (t *Table[State, Request]) Counts() (nodes, pods int) { return len(t.nodes), len(t.pods) }

// SetPod adds or updates a Pod, and reports whether anything changed. node is empty until the Pod is
// scheduled.
func (t *Table[State, Request]) SetPod(id PodID, node string, request Request) bool {
	before, ok := t.pods[id]
	if ok && before.request == request && before.nodeName() == node {
		return false
	}
	// The Pod is added to its new node before it is removed from its old node, because both may be
	// the same node, and because a shared request must not lose its last reference in between.
	var on *Node[State]
	if node != "" {
		on = t.entry(node)
		on.pods++
	}
	t.added(on, request)
	if ok {
		t.detach(before)
	}
	t.pods[id] = pod[State, Request]{node: on, request: request}
	return true
}

// RemovePod removes a Pod that is deleted or has finished, and reports whether the table had it.
func (t *Table[State, Request]) RemovePod(id PodID) bool {
	before, ok := t.pods[id]
	if ok {
		delete(t.pods, id)
		t.detach(before)
	}
	return ok
}

// PrunePods removes all Pods except those for which keep returns true, and reports whether it
// removed any.
func (t *Table[State, Request]) PrunePods(keep func(id PodID) bool) bool {
	changed := false
	for id := range t.pods {
		if !keep(id) {
			changed = t.RemovePod(id) || changed
		}
	}
	return changed
}

func (t *Table[State, Request]) detach(from pod[State, Request]) {
	t.removed(from.node, from.request)
	if from.node != nil {
		from.node.pods--
		t.dropUnused(from.node)
	}
}

func (t *Table[State, Request]) entry(name string) *Node[State] {
	node, ok := t.nodes[name]
	if !ok {
		node = &Node[State]{Name: name}
		t.nodes[name] = node
	}
	return node
}

// dropUnused removes the entry of a node that neither exists nor has Pods.
func (t *Table[State, Request]) dropUnused(node *Node[State]) {
	if !node.Exists && node.pods == 0 {
		delete(t.nodes, node.Name)
	}
}
