package admission

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	"karmada.io/karmada/internal/domain/tenancy"
)

// warnIneffectiveRebalancer warns about listed workloads that are not rebalanced, and about a negative time to
// live, with which the results are deleted immediately.
func (r *report) warnIneffectiveRebalancer(spec *appsv1alpha1.WorkloadRebalancerSpec) {
	path, first := specPath().Child("workloads"), map[appsv1alpha1.ObjectReference]int{}
	if len(spec.Workloads) == 0 {
		r.addWarning(path, "is empty, so nothing is rebalanced")
	}
	for i, workload := range spec.Workloads {
		itemPath := path.Index(i)
		if earlier, isListed := first[workload]; isListed {
			r.addWarning(itemPath, "has no effect: is equal to %s", path.Index(earlier))
			continue
		}
		first[workload] = i
		r.warnIneffectiveWorkload(itemPath, workload)
	}
	if ttl := spec.TTLSecondsAfterFinished; ttl != nil && *ttl < 0 {
		r.addWarning(specPath().Child("ttlSecondsAfterFinished"), "is negative, so the object is deleted as soon as it is finished, as with 0")
	}
}

// warnIneffectiveWorkload warns about a workload that has no binding, because of its kind or its namespace.
func (r *report) warnIneffectiveWorkload(path *field.Path, workload appsv1alpha1.ObjectReference) {
	version, err := schema.ParseGroupVersion(workload.APIVersion)
	kind := version.WithKind(workload.Kind)
	switch {
	case err != nil:
		r.addWarning(path.Child("apiVersion"), "%v", err)
		return
	case tenancy.DefaultSkippedAPIs().Skips(kind):
		r.addWarning(path, "is not rebalanced: %s of %s is never propagated", workload.Kind, workload.APIVersion)
		return
	case r.servedKinds == nil:
		return
	}
	served := r.servedKinds(kind)
	if served == nil || served.unavailable.Has(kind.Group) {
		return
	}
	switch found, isServed := served.kinds[kind]; {
	case !isServed:
		r.addWarning(path, "no API serves %s of %s", workload.Kind, workload.APIVersion)
	case found.namespaced && workload.Namespace == "":
		r.addWarning(path.Child("namespace"), "is required to find a %s", workload.Kind)
	case !found.namespaced && workload.Namespace != "":
		r.addWarning(path.Child("namespace"), "must be empty to find a %s, which has no namespace", workload.Kind)
	}
}
