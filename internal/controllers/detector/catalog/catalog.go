// Package catalog answers "which policies exist, and which of them decides about a template?". It
// indexes the policies of both kinds, so that no lookup scans all policies. The watches of policies
// update the catalog before they queue a policy.
package catalog

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/domain/policy"
)

// Catalog is the index of policies. The reconciles read it, and the watches update it. Policies in
// the catalog must not be changed.
type Catalog struct {
	mu    sync.RWMutex
	index *policy.Index
	// preemptors are the policies that may preempt other policies.
	preemptors map[types.NamespacedName]policy.Object
	// byPriorityClass contains the policies by the name of the PriorityClass to which they refer.
	byPriorityClass map[string]map[types.NamespacedName]policy.Object
}

// New returns an empty catalog.
func New() *Catalog {
	return &Catalog{
		index: policy.NewIndex(), preemptors: map[types.NamespacedName]policy.Object{},
		byPriorityClass: map[string]map[types.NamespacedName]policy.Object{},
	}
}

// Put adds or replaces a policy.
func (c *Catalog) Put(p policy.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(KeyOf(p))
	c.index.Put(p)
	if policy.CanPreempt(p) {
		c.preemptors[KeyOf(p)] = p
	}
	if priority := p.PropagationSpec().SchedulePriority; priority != nil {
		if c.byPriorityClass[priority.PriorityClassName] == nil {
			c.byPriorityClass[priority.PriorityClassName] = map[types.NamespacedName]policy.Object{}
		}
		c.byPriorityClass[priority.PriorityClassName][KeyOf(p)] = p
	}
}

// Delete removes a policy.
func (c *Catalog) Delete(p policy.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(KeyOf(p))
}

func (c *Catalog) removeLocked(key types.NamespacedName) {
	p := c.index.Get(key.Namespace, key.Name)
	if p == nil {
		return
	}
	c.index.Delete(key.Namespace, key.Name)
	delete(c.preemptors, key)
	if priority := p.PropagationSpec().SchedulePriority; priority != nil {
		delete(c.byPriorityClass[priority.PriorityClassName], key)
		if len(c.byPriorityClass[priority.PriorityClassName]) == 0 {
			delete(c.byPriorityClass, priority.PriorityClassName)
		}
	}
}

// Get returns a policy by name, or nil. The namespace of a ClusterPropagationPolicy is empty.
func (c *Catalog) Get(namespace, name string) policy.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.Get(namespace, name)
}

// Decide returns which policy claims a template, or why no policy does.
func (c *Catalog) Decide(template *unstructured.Unstructured) policy.Decision {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return policy.Decide(template, c.index)
}

// NearestMiss returns the policy that comes closest to selecting a template. It returns false if no
// policy comes close.
func (c *Catalog) NearestMiss(template *unstructured.Unstructured) (policy.NearMiss, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.NearestMiss(template)
}

// WithPriorityClass returns the policies that refer to a PriorityClass, in any order.
func (c *Catalog) WithPriorityClass(class string) []policy.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Values(c.byPriorityClass[class]))
}

// PreemptorsAfterUpdate returns the policies that may preempt a policy because its explicit
// priority was lowered. The policy with the highest priority comes first.
func (c *Catalog) PreemptorsAfterUpdate(before, after policy.Object) []policy.Object {
	oldPriority, newPriority := policy.ExplicitPriority(before), policy.ExplicitPriority(after)
	if newPriority >= oldPriority {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	var peers []policy.Object
	for _, p := range c.preemptors {
		if p.GetNamespace() == after.GetNamespace() {
			peers = append(peers, p)
		}
	}
	return policy.PreemptionCandidates(oldPriority, newPriority, peers)
}

// KeyOf returns the namespace and name of a policy.
func KeyOf(p policy.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()}
}
