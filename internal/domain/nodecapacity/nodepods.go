package nodecapacity

import (
	"hash/fnv"
	"iter"

	"k8s.io/apimachinery/pkg/types"
)

// PodID identifies a Pod by a hash of its UID, which needs less memory than the UID.
type PodID [16]byte

// PodIDOf returns the ID of the Pod with the given UID.
func PodIDOf(uid types.UID) (id PodID) {
	hash := fnv.New128a()
	_, _ = hash.Write([]byte(uid))
	hash.Sum(id[:0])
	return id
}

// NodePods is a node, which may not exist yet if only Pods refer to it.
type NodePods[State any] struct {
	Name string
	// Exists is true if the node itself was added and has not been removed.
	Exists bool
	// State belongs to the PodTable's owner. It is kept while the node exists or has Pods.
	State State

	pods int64
}

// Pods returns the number of Pods on the node.
func (n *NodePods[State]) Pods() int64 { return n.pods }

// PodTable tracks which Pods are on which node. It is not safe for concurrent use.
//
// Nodes and Pods can be added and removed in any order. For each Pod, a PodTable stores only its node
// and its request. The owner of the table determines the type of the request and computes sums: it is
// called exactly once when a Pod is added to a node, and exactly once, with the same request, when the
// Pod is removed from it.
type PodTable[State any, Request comparable] struct {
	nodes          map[string]*NodePods[State]
	pods           map[PodID]pod[State, Request]
	added, removed PodFunc[State, Request]
}

// pod holds a Pod's request and node, which is nil until the Pod is scheduled.
type pod[State any, Request comparable] struct {
	node    *NodePods[State]
	request Request
}

func (p pod[State, Request]) nodeName() string {
	if p.node == nil {
		return ""
	}
	return p.node.Name
}

// PodFunc is called when a Pod is added to or removed from a node, which is nil if the Pod is not
// scheduled.
type PodFunc[State any, Request comparable] func(node *NodePods[State], request Request)

// NewPodTable returns an empty table that calls the given functions.
func NewPodTable[State any, Request comparable](added, removed PodFunc[State, Request]) *PodTable[State, Request] {
	return &PodTable[State, Request]{
		nodes: map[string]*NodePods[State]{}, pods: map[PodID]pod[State, Request]{}, added: added, removed: removed,
	}
}

// AddNode marks the named node as existing and returns it. isNew reports whether it did not exist
// before.
func (t *PodTable[State, Request]) AddNode(name string) (node *NodePods[State], isNew bool) {
	node = t.entry(name)
	isNew, node.Exists = !node.Exists, true
	return node, isNew
}

// FindNode returns the named node, or nil if it does not exist.
func (t *PodTable[State, Request]) FindNode(name string) *NodePods[State] {
	if node := t.nodes[name]; node != nil && node.Exists {
		return node
	}
	return nil
}

// RemoveNode marks the node as not existing. Its Pods stay in the table until they are removed.
func (t *PodTable[State, Request]) RemoveNode(node *NodePods[State]) {
	node.Exists = false
	t.dropUnused(node)
}

// Nodes returns the existing nodes in any order. Nodes may be removed during the iteration.
func (t *PodTable[State, Request]) Nodes() iter.Seq[*NodePods[State]] {
	return func(yield func(*NodePods[State]) bool) {
		for _, node := range t.nodes {
			if node.Exists && !yield(node) {
				return
			}
		}
	}
}

// Counts returns the number of nodes that exist or have Pods, and the number of Pods.
func (t *PodTable[State, Request]) Counts() (nodes, pods int) { return len(t.nodes), len(t.pods) }

// SetPod adds or updates the Pod, and reports whether anything changed. node is empty if the Pod is not
// scheduled.
func (t *PodTable[State, Request]) SetPod(id PodID, node string, request Request) bool {
	before, ok := t.pods[id]
	if ok && before.request == request && before.nodeName() == node {
		return false
	}
	// The Pod is added to its new node before it is removed from its old one, because both may be the
	// same node, and because a shared request must not lose its last reference in between.
	var on *NodePods[State]
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

// RemovePod removes the Pod, and reports whether the table contained it.
func (t *PodTable[State, Request]) RemovePod(id PodID) bool {
	before, ok := t.pods[id]
	if ok {
		delete(t.pods, id)
		t.detach(before)
	}
	return ok
}

// PrunePods removes all Pods except those for which keep returns true, and reports whether it removed
// any.
func (t *PodTable[State, Request]) PrunePods(keep func(id PodID) bool) bool {
	changed := false
	for id := range t.pods {
		if !keep(id) {
			changed = t.RemovePod(id) || changed
		}
	}
	return changed
}

func (t *PodTable[State, Request]) detach(from pod[State, Request]) {
	t.removed(from.node, from.request)
	if from.node != nil {
		from.node.pods--
		t.dropUnused(from.node)
	}
}

func (t *PodTable[State, Request]) entry(name string) *NodePods[State] {
	node, ok := t.nodes[name]
	if !ok {
		node = &NodePods[State]{Name: name}
		t.nodes[name] = node
	}
	return node
}

// dropUnused removes the node's entry if the node neither exists nor has Pods.
func (t *PodTable[State, Request]) dropUnused(node *NodePods[State]) {
	if !node.Exists && node.pods == 0 {
		delete(t.nodes, node.Name)
	}
}
