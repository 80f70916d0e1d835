package admission

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
)

// work warns about a Work where nobody looks for one. It is no error: the API
// has always accepted it.
func (r *report) work(object *workv1alpha1.Work) {
	if _, ok := work.ClusterOf(object.Namespace); !ok {
		r.warn(field.NewPath("metadata", "namespace"),
			"no cluster applies this Work: Works live in namespaces named %s<cluster>", clusterv1alpha1.ExecutionSpacePrefix)
	}
}
