package bindingstatus

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/work"
)

// recordUnhealthyEvents records events on a binding and its template that say in which clusters the
// workload is unhealthy, and why. It ignores apply errors, because the controllers that deliver the
// workload record them.
func (r *reconciler) recordUnhealthyEvents(bound binding.Object, items []workv1alpha2.AggregatedStatusItem) {
	causes := work.UnhealthyReasons(items)
	for _, object := range []client.Object{bound, binding.TemplateReference(bound)} {
		for i := range items {
			cluster := items[i].ClusterName
			if cause, ok := causes[cluster]; ok {
				r.events.RecordClusterFailure(cluster, object, workv1alpha2.EventReasonWorkloadUnhealthy, errors.New("cluster "+cluster+": "+cause))
				continue
			}
			r.events.ClearClusterFailure(cluster, object, workv1alpha2.EventReasonWorkloadUnhealthy)
		}
	}
}
