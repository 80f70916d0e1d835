package bindingstatus

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/work"
)

// recordTroubles records, on a binding and its template, in which clusters the
// workload does not run as it should, and why. That a cluster refused the workload
// is recorded by the controllers that deliver it.
func (r *reconciler) recordTroubles(of binding.Object, items []workv1alpha2.AggregatedStatusItem) {
	troubles := work.Troubles(items)
	for _, object := range []client.Object{of, binding.Template(of)} {
		for i := range items {
			cluster := items[i].ClusterName
			if cause, ok := troubles[cluster]; ok {
				r.events.FailedIn(cluster, object, workv1alpha2.EventReasonWorkloadUnhealthy, errors.New("cluster "+cluster+": "+cause))
				continue
			}
			r.events.RecoveredIn(cluster, object, workv1alpha2.EventReasonWorkloadUnhealthy)
		}
	}
}
