package quotasync

import (
	"context"
	"maps"
	"slices"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/quota"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// assignedClusters returns the keys of quotasByCluster.
func assignedClusters(object client.Object) []string {
	federated, ok := object.(*policyv1alpha1.FederatedResourceQuota)
	if !ok {
		return nil
	}
	return slices.Collect(maps.Keys(quota.AssignedClusters(federated)))
}

// withoutAssignment returns the Works in clusters for which the quota has no assignment.
func withoutAssignment(works []workv1alpha1.Work, federated *policyv1alpha1.FederatedResourceQuota) []workv1alpha1.Work {
	assigned := quota.AssignedClusters(federated)
	return slices.DeleteFunc(slices.Clone(works), func(each workv1alpha1.Work) bool {
		cluster, _ := work.ClusterOf(each.Namespace)
		_, isAssigned := assigned[cluster]
		return isAssigned
	})
}

// newClusterHandler returns a handler that queues the quotas with an assignment for a new cluster. The
// initial list is ignored, because the quotas are queued at the start too.
func (r *reconciler) newClusterHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if e.IsInInitialList {
				return
			}
			quotas := &policyv1alpha1.FederatedResourceQuotaList{}
			if err := r.karmada.List(ctx, quotas, quotasByCluster.Matching(e.Object.GetName()), client.UnsafeDisableDeepCopy); err != nil {
				log.FromContext(ctx).Error(err, "Cannot list the FederatedResourceQuotas of a cluster", "member", e.Object.GetName())
				return
			}
			for i := range quotas.Items {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&quotas.Items[i])})
			}
		},
	}
}

// newWorkHandler returns a handler that queues the quota of a Work that was changed or deleted. It also
// queues the quotas of the Works in the initial list, because a quota may have been deleted while the
// controller did not run. In pull mode, a deleted Work is created again only after a delay.
func (r *reconciler) newWorkHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if key, ok := loop.QuotaOfWork(e.Object); ok && e.IsInInitialList {
				q.Add(reconcile.Request{NamespacedName: key})
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if key, ok := loop.QuotaOfWork(e.ObjectOld); ok && e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				q.Add(reconcile.Request{NamespacedName: key})
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if key, ok := loop.QuotaOfWork(e.Object); ok {
				q.AddAfter(reconcile.Request{NamespacedName: key}, loop.RecreationDelay(ctx, r.karmada, e.Object))
			}
		},
	}
}
