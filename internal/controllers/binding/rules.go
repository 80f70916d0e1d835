package binding

import (
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/access/interpreters"
)

// newRulesSource returns a source that queues the bindings of a kind whose rules changed, because
// the replicas in the Works of these bindings may have to change.
func (r *reconciler) newRulesSource() source.Source {
	return interpreters.NewSource(r.rules, interpreters.BindingsOf(r.karmada, r.namespaced, nil))
}
