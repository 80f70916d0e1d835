package bindingstatus

import (
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/access/interpreters"
)

// newRulesSource returns a source that queues the bindings of one scope for templates of a kind
// whose rules changed, because the status of these templates may be aggregated differently.
func (r *reconciler) newRulesSource(namespaced bool) source.Source {
	return interpreters.NewSource(r.rules, interpreters.BindingsOf(r.karmada, namespaced, isPlaced))
}
