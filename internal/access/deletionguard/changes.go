package deletionguard

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

// changeRetention is how long a recorded change by a user, or the recorded end of an eviction,
// explains that a binding leaves a cluster. It is longer than a graceful eviction takes.
const changeRetention = 30 * time.Minute

// bindingChange is a change that explains why a binding leaves a cluster. If cluster is empty, the
// change explains it for every cluster.
type bindingChange struct {
	binding types.NamespacedName
	cluster string
}

// changeTracker holds which bindings users changed recently, and from which clusters an eviction
// ended. It is empty when the process starts, so at first the guard finds fewer explanations and
// holds more deletions.
type changeTracker struct {
	now func() time.Time

	mu          sync.Mutex
	recordedAt  map[bindingChange]time.Time
	lastCleanup time.Time
}

func newChangeTracker(now func() time.Time) *changeTracker {
	return &changeTracker{now: now, recordedAt: map[bindingChange]time.Time{}}
}

// watch records the updates of the bindings of both scopes.
func (c *changeTracker) watch(ctx context.Context, informers cache.Cache) error {
	for _, namespaced := range []bool{true, false} {
		informer, err := informers.GetInformer(ctx, binding.New(namespaced))
		if err != nil {
			return fmt.Errorf("watching bindings: %w", err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
			older, ok := before.(binding.Object)
			newer, ok2 := after.(binding.Object)
			if ok && ok2 {
				c.recordUpdate(older, newer)
			}
		}}); err != nil {
			return fmt.Errorf("watching bindings: %w", err)
		}
	}
	return nil
}

// recordUpdate records an update of a binding if the update explains that the binding leaves
// clusters.
func (c *changeTracker) recordUpdate(older, newer binding.Object) {
	if guard.UserChangedPlacement(older.BindingSpec(), newer.BindingSpec()) {
		c.record(newer, "")
	}
	for _, cluster := range guard.EndedEvictions(older.BindingSpec(), newer.BindingSpec()) {
		c.record(newer, cluster)
	}
}

// record stores that a binding leaves the cluster for a known reason. An empty cluster means that
// the reason applies to every cluster.
func (c *changeTracker) record(bound binding.Object, cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Sub(c.lastCleanup) > changeRetention {
		for change, at := range c.recordedAt {
			if now.Sub(at) > changeRetention {
				delete(c.recordedAt, change)
			}
		}
		c.lastCleanup = now
	}
	c.recordedAt[newBindingChange(bound, cluster)] = now
}

// isExplained reports whether a user changed the binding recently, or an eviction from the cluster
// ended recently. A change of another binding is no explanation. For an attached binding, the
// caller also checks the bindings that depend on it.
func (c *changeTracker) isExplained(bound binding.Object, cluster string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, change := range []bindingChange{newBindingChange(bound, ""), newBindingChange(bound, cluster)} {
		if at, ok := c.recordedAt[change]; ok && c.now().Sub(at) <= changeRetention {
			return true
		}
	}
	return false
}

func newBindingChange(bound binding.Object, cluster string) bindingChange {
	return bindingChange{binding: types.NamespacedName{Namespace: bound.GetNamespace(), Name: bound.GetName()}, cluster: cluster}
}
