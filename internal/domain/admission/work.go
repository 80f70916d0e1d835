package admission

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
)

// validateWork warns about a Work outside any execution namespace, because no cluster applies such a
// Work. The Work is not rejected, because upstream accepts it.
func (r *report) validateWork(object *workv1alpha1.Work) {
	if _, ok := work.ClusterOf(object.Namespace); !ok {
		r.addWarning(field.NewPath("metadata", "namespace"),
			"no cluster applies this Work: Works must be in a namespace named %s<cluster>", clusterv1alpha1.ExecutionNamespacePrefix)
	}
}
