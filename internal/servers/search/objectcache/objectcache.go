// Package objectcache caches the objects of the members.
//
// One Cache serves all parts of karmada-search. It has one watch for each kind of each cluster, and
// keeps the objects compressed. Readers take a Snapshot of a kind and follow the log of its changes.
//
// Invariants:
//   - A snapshot never changes, and the events after its position lead to every newer snapshot.
//   - A list after a lost watch yields only the differences.
//   - Objects leave the cache only if the cluster is gone, no registry selects the kind for it, or
//     a complete list without them arrived.
//   - The log has one bound for all followers. A slow follower expires, and delays no other follower.
package objectcache

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Cache holds the objects of all kinds that registries name.
type Cache struct {
	options   Options
	coders    *coderPair
	evaluated chan struct{}
	evaluate  sync.Once
	// states is notified after the state of a source or the selection of a cluster changed.
	states    signal
	evaluator *evaluator
	budget    *budget

	mu         sync.RWMutex
	kinds      map[schema.GroupVersionKind]*Kind
	byResource map[schema.GroupVersionResource]*Kind
	sorted     []*Kind
	changed    chan struct{}
}

// New returns an empty cache.
func New(options Options) (*Cache, error) {
	options = options.withDefaults()
	shared, err := newCoderPair(uint64(options.MaxObjectBytes), nil)
	if err != nil {
		return nil, fmt.Errorf("creating the cache of member objects: %w", err)
	}
	c := &Cache{
		options: options, coders: shared, budget: newBudget(options), evaluated: make(chan struct{}), changed: make(chan struct{}),
		kinds: map[schema.GroupVersionKind]*Kind{}, byResource: map[schema.GroupVersionResource]*Kind{},
	}
	c.evaluator = newEvaluator(c)
	return c, nil
}

// Kind returns the kind of a resource. It returns nil if no registry names the kind.
func (c *Cache) Kind(resource schema.GroupVersionResource) *Kind {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byResource[resource]
}

// KindOf returns a kind. It returns nil if no registry names the kind.
func (c *Cache) KindOf(kind schema.GroupVersionKind) *Kind {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.kinds[kind]
}

// Kinds returns all kinds, sorted by group, version and kind. The caller must not modify the result.
func (c *Cache) Kinds() []*Kind {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.sorted
}

// Changed returns a channel that is closed when the set of kinds, or the resource of a kind, changes.
func (c *Cache) Changed() <-chan struct{} {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.changed
}

// Evaluated returns a channel that is closed when the registries and clusters were evaluated for the
// first time. Until then, a missing kind or cluster means nothing.
func (c *Cache) Evaluated() <-chan struct{} { return c.evaluated }

// SetEvaluated closes the channel that Evaluated returns.
func (c *Cache) SetEvaluated() { c.evaluate.Do(func() { close(c.evaluated) }) }

// StatesChanged returns a channel that is closed when the next source comes, goes, or changes its state or
// namespaces, and when the registries select something else. Changes of objects do not close it.
func (c *Cache) StatesChanged() <-chan struct{} { return c.states.wait() }

// SetKind adds a kind, or changes its resource and scope. The objects of an existing kind stay. A resource
// that another kind has stays with that kind: then Kind does not return the new one.
func (c *Cache) SetKind(kind schema.GroupVersionKind, resource string, namespaced bool) *Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kinds[kind]
	if k != nil && k.isServedAs(resource, namespaced) {
		return k
	}
	if k == nil {
		k = c.newKind(kind)
		c.kinds[kind] = k
	}
	k.mu.Lock()
	k.resource, k.namespaced = resource, namespaced
	k.mu.Unlock()
	c.publish()
	return k
}

func (c *Cache) newKind(kind schema.GroupVersionKind) *Kind {
	return &Kind{
		kind: kind, codec: newCodec(c.coders), now: c.options.Now, onState: c.states.notify, maxObjectBytes: c.options.MaxObjectBytes,
		budget:  c.budget,
		removed: make(chan struct{}), sources: map[string]*sourceObjects{},
		log: eventLog{maxEvents: c.options.LogEvents, maxBytes: c.options.LogBytes},
	}
}

func (k *Kind) isServedAs(resource string, namespaced bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.resource == resource && k.namespaced == namespaced
}

// RemoveKind removes a kind with all its objects, and ends its followers.
func (c *Cache) RemoveKind(kind schema.GroupVersionKind) {
	c.mu.Lock()
	k := c.kinds[kind]
	if k != nil {
		delete(c.kinds, kind)
		c.publish()
	}
	c.mu.Unlock()
	if k != nil {
		k.close()
	}
}

// publish updates the indexes of kinds and announces the change. c.mu is locked.
func (c *Cache) publish() {
	c.sorted = slices.SortedFunc(maps.Values(c.kinds), func(a, b *Kind) int {
		return cmp.Or(strings.Compare(a.kind.Group, b.kind.Group), strings.Compare(a.kind.Version, b.kind.Version),
			strings.Compare(a.kind.Kind, b.kind.Kind))
	})
	c.byResource = c.indexResources()
	close(c.changed)
	c.changed = make(chan struct{})
}

// indexResources returns the kind of each resource. Built-in kinds keep their resources, and so do kinds
// that already have one. c.mu is locked.
func (c *Cache) indexResources() map[schema.GroupVersionResource]*Kind {
	index := make(map[schema.GroupVersionResource]*Kind, len(c.kinds))
	precedence := []func(schema.GroupVersionResource, *Kind) bool{
		func(_ schema.GroupVersionResource, k *Kind) bool { return isBuiltIn(k.kind.GroupKind()) },
		func(resource schema.GroupVersionResource, k *Kind) bool { return c.byResource[resource] == k },
		func(schema.GroupVersionResource, *Kind) bool { return true },
	}
	for _, precedes := range precedence {
		for _, k := range c.sorted {
			if resource := k.GroupVersionResource(); index[resource] == nil && precedes(resource, k) {
				index[resource] = k
			}
		}
	}
	return index
}

// signal wakes all goroutines that wait for a change.
type signal struct {
	mu      sync.Mutex
	changed chan struct{}
}

func (s *signal) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}
