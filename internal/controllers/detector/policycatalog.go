package detector

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/domain/policy"
)

// policyCatalog is the index of policies, shared by the reconciles that read it and the
// watches that update it. Policies in it must not be changed.
type policyCatalog struct {
	mu    sync.RWMutex
	index *policy.Index
	// preemptors are the policies that may preempt.
	preemptors map[types.NamespacedName]policy.Object
	// byPriorityClass holds the policies by the name of their PriorityClass.
	byPriorityClass map[string]map[types.NamespacedName]policy.Object
}

func newPolicyCatalog() *policyCatalog {
	return &policyCatalog{
		index: policy.NewIndex(), preemptors: map[types.NamespacedName]policy.Object{},
		byPriorityClass: map[string]map[types.NamespacedName]policy.Object{},
	}
}

func (c *policyCatalog) put(p policy.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(keyOf(p))
	c.index.Put(p)
	if policy.CanPreempt(p) {
		c.preemptors[keyOf(p)] = p
	}
	if priority := p.PropagationSpec().SchedulePriority; priority != nil {
		if c.byPriorityClass[priority.PriorityClassName] == nil {
			c.byPriorityClass[priority.PriorityClassName] = map[types.NamespacedName]policy.Object{}
		}
		c.byPriorityClass[priority.PriorityClassName][keyOf(p)] = p
	}
}

func (c *policyCatalog) delete(p policy.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(keyOf(p))
}

func (c *policyCatalog) removeLocked(key types.NamespacedName) {
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

func (c *policyCatalog) get(namespace, name string) policy.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.Get(namespace, name)
}

func (c *policyCatalog) decide(template *unstructured.Unstructured) policy.Decision {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return policy.Decide(template, c.index)
}

func (c *policyCatalog) nearestMiss(template *unstructured.Unstructured) (policy.NearMiss, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.NearestMiss(template)
}

// withPriorityClass returns the policies that name a PriorityClass, in no order.
func (c *policyCatalog) withPriorityClass(class string) []policy.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Values(c.byPriorityClass[class]))
}

// preemptorsAfterUpdate returns the policies that may preempt because the explicit priority of
// a policy became lower, highest priority first.
func (c *policyCatalog) preemptorsAfterUpdate(before, after policy.Object) []policy.Object {
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

func keyOf(p policy.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()}
}
