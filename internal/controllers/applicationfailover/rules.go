package applicationfailover

import (
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/access/interpreters"
)

// newRulesSource returns a source that queues the bindings of a kind whose rules changed, because
// only kinds with a health rule have an application failover.
func (r *reconciler) newRulesSource() source.Source {
	return interpreters.NewSource(r.rules, interpreters.BindingsOf(r.karmada, r.namespaced, hasFailover))
}
