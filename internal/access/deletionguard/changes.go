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

// changeRetention is the time for which a change by a user, or the end of an eviction, explains
// that a binding leaves a cluster. It is longer than a graceful eviction takes.
const changeRetention = 30 * time.Minute

// bindingChange explains that a binding leaves a cluster, or any cluster if cluster is empty.
type bindingChange struct {
	binding types.NamespacedName
	cluster string
}

// changeTracker holds which bindings users changed recently, and from which clusters an
// eviction ended. It is empty when the process starts. Then fewer deletions are explained and
// more are held.
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

// recordUpdate records whether an update of a binding explains that it leaves clusters.
func (c *changeTracker) recordUpdate(older, newer binding.Object) {
	if guard.UserChangedPlacement(older.BindingSpec(), newer.BindingSpec()) {
		c.record(newer, "")
	}
	for _, cluster := range guard.EndedEvictions(older.BindingSpec(), newer.BindingSpec()) {
		c.record(newer, cluster)
	}
}

// record stores that a binding leaves the cluster for a known reason, or any cluster if the
// cluster is empty.
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

// isExplained reports whether a user changed the binding recently, or an eviction from the
// cluster ended. A change of another binding explains nothing: an attached binding lists its
// dependents.
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
