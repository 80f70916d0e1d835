package applicationfailover

import (
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/access/interpreters"
)

// onRules queues the bindings of a kind whose rules changed, because only kinds with a health rule
// have an application failover.
func (r *reconciler) onRules() source.Source {
	return interpreters.NewSource(r.rules, interpreters.BindingsOf(r.karmada, r.namespaced, hasFailover))
}
