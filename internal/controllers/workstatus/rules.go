package workstatus

import (
	"context"

	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// requeueForRules queues the Works with objects whose status was interpreted by rules that changed
// since then. A Work without a pass need not be queued, because its first pass uses the new rules.
func (c *controller) requeueForRules(_ context.Context, kinds interpreter.Kinds) {
	for _, key := range c.interpreted.Works(kinds) {
		if cluster, ok := work.ClusterOf(key.Namespace); ok {
			c.queues.Add(cluster, key, loop.LowPriority, 0)
		}
	}
}

// stopTrackingCluster deletes the state in memory about the Works of a cluster.
func (c *controller) stopTrackingCluster(name string) {
	c.interpreted.DeleteNamespace(work.ExecutionNamespace(name))
}
