package detector

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/domain/policy"
)

// catalog is the index of policies, shared by the passes that read it and the
// watches that keep it up to date. Policies in it must not be changed.
type catalog struct {
	mu    sync.RWMutex
	index *policy.Index
	// preemptors are the policies that may preempt.
	preemptors map[types.NamespacedName]policy.Object
	// classes are the policies by the PriorityClass that they name.
	classes map[string]map[types.NamespacedName]policy.Object
}

func newCatalog() *catalog {
	return &catalog{
		index: policy.NewIndex(), preemptors: map[types.NamespacedName]policy.Object{},
		classes: map[string]map[types.NamespacedName]policy.Object{},
	}
}

func (c *catalog) put(p policy.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(keyOf(p))
	c.index.Put(p)
	if policy.MayPreempt(p) {
		c.preemptors[keyOf(p)] = p
	}
	if named := p.PropagationSpec().SchedulePriority; named != nil {
		if c.classes[named.PriorityClassName] == nil {
			c.classes[named.PriorityClassName] = map[types.NamespacedName]policy.Object{}
		}
		c.classes[named.PriorityClassName][keyOf(p)] = p
	}
}

func (c *catalog) delete(p policy.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(keyOf(p))
}

func (c *catalog) remove(key types.NamespacedName) {
	p := c.index.Get(key.Namespace, key.Name)
	if p == nil {
		return
	}
	c.index.Delete(key.Namespace, key.Name)
	delete(c.preemptors, key)
	if named := p.PropagationSpec().SchedulePriority; named != nil {
		delete(c.classes[named.PriorityClassName], key)
		if len(c.classes[named.PriorityClassName]) == 0 {
			delete(c.classes, named.PriorityClassName)
		}
	}
}

func (c *catalog) get(namespace, name string) policy.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.Get(namespace, name)
}

func (c *catalog) decide(template *unstructured.Unstructured) policy.Decision {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return policy.Decide(template, c.index)
}

func (c *catalog) nearestMiss(template *unstructured.Unstructured) (policy.Miss, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.NearestMiss(template)
}

// naming returns the policies that name a PriorityClass, in no order.
func (c *catalog) naming(class string) []policy.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Values(c.classes[class]))
}

// overtakers are the policies that may preempt now that one of their kind went
// from one priority to a lower one, the most important first.
func (c *catalog) overtakers(before, after policy.Object) []policy.Object {
	from, to := policy.ExplicitPriority(before), policy.ExplicitPriority(after)
	if to >= from {
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
	return policy.Overtakers(from, to, peers)
}

func keyOf(p policy.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()}
}
