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

// changeMemory is for how long a change that a user made explains what a scheduler
// does. It is longer than a graceful eviction takes.
const changeMemory = 30 * time.Minute

// changes remembers which bindings users changed lately. A process that has just
// started knows of none; then less is explained and more is held.
type changes struct {
	now func() time.Time

	mu    sync.Mutex
	at    map[types.NamespacedName]time.Time
	swept time.Time
}

func newChanges(now func() time.Time) *changes {
	return &changes{now: now, at: map[types.NamespacedName]time.Time{}}
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
			if ok && ok2 && guard.Asked(older.BindingSpec(), newer.BindingSpec()) {
				c.note(newer)
			}
		}}); err != nil {
			return fmt.Errorf("watching bindings: %w", err)
		}
	}
	return nil
}

// note remembers that a user changed a binding, and that something was changed in
// its namespace.
func (c *changes) note(bound binding.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Sub(c.swept) > changeMemory {
		for key, at := range c.at {
			if now.Sub(at) > changeMemory {
				delete(c.at, key)
			}
		}
		c.swept = now
	}
	c.at[types.NamespacedName{Namespace: bound.GetNamespace(), Name: bound.GetName()}] = now
	c.at[types.NamespacedName{Namespace: bound.GetNamespace()}] = now
}

// isRecent reports whether a user changed the binding lately. A binding without a
// placement follows others of its namespace, and so do the changes that explain it.
func (c *changes) isRecent(bound binding.Object) bool {
	key := types.NamespacedName{Namespace: bound.GetNamespace(), Name: bound.GetName()}
	if bound.BindingSpec().Placement == nil {
		key.Name = ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.at[key]
	return ok && c.now().Sub(at) <= changeMemory
}
