package dependencies

import (
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/domain/binding"
)

// newRulesSource returns a source that queues the dependents of a kind whose rules changed, because
// these dependents may have other dependencies now.
func (r *reconciler) newRulesSource() source.Source {
	return interpreters.NewSource(r.rules, interpreters.BindingsOf(r.karmada, true, func(bound binding.Object) bool {
		dependent, ok := bound.(*workv1alpha2.ResourceBinding)
		return ok && hasDependencies(dependent)
	}))
}
