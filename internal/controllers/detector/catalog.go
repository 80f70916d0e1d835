package detector

import (
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
}

func newCatalog() *catalog {
	return &catalog{index: policy.NewIndex(), preemptors: map[types.NamespacedName]policy.Object{}}
}

func (c *catalog) put(p policy.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index.Put(p)
	delete(c.preemptors, keyOf(p))
	if policy.MayPreempt(p) {
		c.preemptors[keyOf(p)] = p
	}
}

func (c *catalog) delete(p policy.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index.Delete(p.GetNamespace(), p.GetName())
	delete(c.preemptors, keyOf(p))
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
