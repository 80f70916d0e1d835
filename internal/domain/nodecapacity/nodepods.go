package nodecapacity

import (
	"hash/fnv"
	"iter"

	"k8s.io/apimachinery/pkg/types"
)

// PodID identifies a Pod by a hash of its UID, which needs less memory than the UID.
type PodID [16]byte

// PodIDOf returns the ID of the Pod with this UID.
func PodIDOf(uid types.UID) (id PodID) {
	hash := fnv.New128a()
	_, _ = hash.Write([]byte(uid))
	hash.Sum(id[:0])
	return id
}

// NodePods is a node, or the name of a node that only Pods refer to so far.
type NodePods[State any] struct {
	Name string
	// Exists reports whether the node itself was added, and not removed since.
	Exists bool
	// State belongs to the owner of the PodTable. It is kept while the node exists or has Pods.
	State State

	pods int64
}

// Pods returns the number of Pods on the node.
func (n *NodePods[State]) Pods() int64 { return n.pods }

// PodTable holds nodes and Pods. It must not be used concurrently.
//
// A PodTable accepts events of nodes and Pods in any order. It stores only a few values for each Pod:
// its node and its request. The owner of a PodTable decides what a node and a request are, and keeps
// sums. The PodTable calls the owner exactly once when a Pod comes to a node, and exactly once when
// the Pod leaves the node, with the same request.
type PodTable[State any, Request comparable] struct {
	nodes          map[string]*NodePods[State]
	pods           map[PodID]pod[State, Request]
	added, removed PodFunc[State, Request]
}

// pod is a Pod. node is nil until the Pod is scheduled.
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

// PodFunc is called for a Pod that comes to a node or leaves a node. node is nil for a Pod that is
// not scheduled.
type PodFunc[State any, Request comparable] func(node *NodePods[State], request Request)

// NewPodTable returns an empty table that calls the functions of its owner.
func NewPodTable[State any, Request comparable](added, removed PodFunc[State, Request]) *PodTable[State, Request] {
	return &PodTable[State, Request]{nodes: map[string]*NodePods[State]{}, pods: map[PodID]pod[State, Request]{}, added: added, removed: removed}
}

// AddNode returns the node with this name and marks it as existing. isNew reports whether the node
// did not exist before.
func (t *PodTable[State, Request]) AddNode(name string) (node *NodePods[State], isNew bool) {
	node = t.entry(name)
	isNew, node.Exists = !node.Exists, true
	return node, isNew
}

// FindNode returns the existing node with this name, or nil.
func (t *PodTable[State, Request]) FindNode(name string) *NodePods[State] {
	if node := t.nodes[name]; node != nil && node.Exists {
		return node
	}
	return nil
}

// RemoveNode marks a node as not existing. Pods on the node stay in the table until they are
// removed.
func (t *PodTable[State, Request]) RemoveNode(node *NodePods[State]) {
	node.Exists = false
	t.dropUnused(node)
}

// Nodes returns the existing nodes in any order. The caller may remove nodes meanwhile.
func (t *PodTable[State, Request]) Nodes() iter.Seq[*NodePods[State]] {
	return func(yield func(*NodePods[State]) bool) {
		for _, node := range t.nodes {
			if node.Exists && !yield(node) {
				return
			}
		}
	}
}

// Counts returns the number of Pods, and the number of nodes that exist or have Pods.
func (t *PodTable[State, Request]) Counts() (nodes, pods int) { return len(t.nodes), len(t.pods) }

// SetPod adds or updates a Pod, and reports whether anything changed. node is empty until the Pod is
// scheduled.
func (t *PodTable[State, Request]) SetPod(id PodID, node string, request Request) bool {
	before, ok := t.pods[id]
	if ok && before.request == request && before.nodeName() == node {
		return false
	}
	// The Pod is added to its new node before it is removed from its old node, because both may be
	// the same node, and because a shared request must not lose its last reference in between.
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

// RemovePod removes a Pod that is deleted or has finished, and reports whether the table had it.
func (t *PodTable[State, Request]) RemovePod(id PodID) bool {
	before, ok := t.pods[id]
	if ok {
		delete(t.pods, id)
		t.detach(before)
	}
	return ok
}

// PrunePods removes all Pods except those for which keep returns true, and reports whether it
// removed any.
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

// dropUnused removes the entry of a node that neither exists nor has Pods.
func (t *PodTable[State, Request]) dropUnused(node *NodePods[State]) {
	if !node.Exists && node.pods == 0 {
		delete(t.nodes, node.Name)
	}
}
