package binding

import (
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/access/interpreters"
)

// onRules queues the bindings of a kind whose rules changed, because the replicas in the Works of
// these bindings may have to change.
func (r *reconciler) onRules() source.Source {
	return interpreters.NewSource(r.rules, interpreters.BindingsOf(r.karmada, r.namespaced, nil))
}
