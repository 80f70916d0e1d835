package judge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/guard"
)

// changeMemory is for how long a change that a user made, or the end of an eviction,
// explains what a scheduler does. It is longer than a graceful eviction takes.
const changeMemory = 30 * time.Minute

// change is what explains that a binding left a cluster, or any cluster if it names none.
type change struct {
	of      types.NamespacedName
	cluster string
}

// changes remembers which bindings users changed lately, and from which clusters an
// eviction ended. A process that has just started knows of none; then less is explained
// and more is held.
type changes struct {
	now func() time.Time

	mu    sync.Mutex
	at    map[change]time.Time
	swept time.Time
}

func newChanges(now func() time.Time) *changes {
	return &changes{now: now, at: map[change]time.Time{}}
}

// watch follows the bindings of both scopes.
func (c *changes) watch(ctx context.Context, from cache.Cache) error {
	for _, namespaced := range []bool{true, false} {
		informer, err := from.GetInformer(ctx, binding.New(namespaced))
		if err != nil {
			return fmt.Errorf("watching bindings: %w", err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
			older, ok := before.(binding.Object)
			newer, ok2 := after.(binding.Object)
			if ok && ok2 {
				c.compare(older, newer)
			}
		}}); err != nil {
			return fmt.Errorf("watching bindings: %w", err)
		}
	}
	return nil
}

// compare notes what explains that a binding leaves clusters.
func (c *changes) compare(older, newer binding.Object) {
	if guard.Asked(older.BindingSpec(), newer.BindingSpec()) {
		c.note(newer, "")
	}
	for _, cluster := range guard.Evicted(older.BindingSpec(), newer.BindingSpec()) {
		c.note(newer, cluster)
	}
}

// note remembers that a binding leaves the cluster, or any cluster if that is empty, for
// a known reason.
func (c *changes) note(bound binding.Object, cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Sub(c.swept) > changeMemory {
		for each, at := range c.at {
			if now.Sub(at) > changeMemory {
				delete(c.at, each)
			}
		}
		c.swept = now
	}
	c.at[changeOf(bound, cluster)] = now
}

// explain reports whether a user changed the binding lately, or its eviction from the
// cluster ended. A change of another binding explains nothing: what a binding without a
// placement follows is in its list of dependents.
func (c *changes) explain(bound binding.Object, cluster string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, each := range []change{changeOf(bound, ""), changeOf(bound, cluster)} {
		if at, ok := c.at[each]; ok && c.now().Sub(at) <= changeMemory {
			return true
		}
	}
	return false
}

func changeOf(bound binding.Object, cluster string) change {
	return change{of: types.NamespacedName{Namespace: bound.GetNamespace(), Name: bound.GetName()}, cluster: cluster}
}
