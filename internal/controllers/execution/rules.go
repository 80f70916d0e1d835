package execution

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// requeueForRules queues the Works whose manifests were applied with rules that changed since then.
// A Work without a pass need not be queued, because its first pass uses the new rules.
func (c *controller) requeueForRules(_ context.Context, kinds interpreter.Kinds) {
	for _, key := range c.interpreted.Works(kinds) {
		c.tracker.recordRuleChange(key, kinds)
		if cluster, ok := work.ClusterOf(key.Namespace); ok {
			c.queues.Add(cluster, key, loop.LowPriority, 0)
		}
	}
}

// startPass records that a pass over a Work starts and will use the current rules. Two passes over
// the same Work never run at the same time.
func (a *appliedTracker) startPass(karmadaWork types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ruleChanges.Delete(karmadaWork)
}

// recordRuleChange records that the rules of the kinds changed. The manifests of these kinds are
// then compared with the objects in the member again. This includes manifests that a running pass
// applies, because that pass may have used the old rules.
func (a *appliedTracker) recordRuleChange(karmadaWork types.NamespacedName, kinds interpreter.Kinds) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ruleChanges.Insert(karmadaWork)
	for key, state := range a.applied[karmadaWork] {
		if kinds.Has(key.kind) {
			state.hasOldRules = true
			a.applied[karmadaWork][key] = state
		}
	}
}
