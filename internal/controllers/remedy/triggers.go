package remedy

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/loop"
)

// onlyRelevantClusters returns a predicate that selects new clusters, and updates of a cluster after
// which Remedies may require other actions.
func onlyRelevantClusters() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			older, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			newer, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return ok && ok2 && cluster.NeedsRemedyUpdate(older, newer)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

type queue = loop.Queue[reconcile.Request]

// newRemedyHandler returns a handler that queues the clusters that a Remedy selects, or selected
// before it changed. It ignores Remedies that existed at the start, because all clusters are queued
// then.
func (r *reconciler) newRemedyHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if created, ok := e.Object.(*remedyv1alpha1.Remedy); ok && !e.IsInInitialList {
				r.enqueueTargets(ctx, q, created)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(*remedyv1alpha1.Remedy)
			newer, ok2 := e.ObjectNew.(*remedyv1alpha1.Remedy)
			if ok && ok2 && older.Generation != newer.Generation {
				r.enqueueTargets(ctx, q, older, newer)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if deleted, ok := e.Object.(*remedyv1alpha1.Remedy); ok {
				r.enqueueTargets(ctx, q, deleted)
			}
		},
	}
}

func (r *reconciler) enqueueTargets(ctx context.Context, q queue, remedies ...*remedyv1alpha1.Remedy) {
	loop.EnqueueClusters(ctx, r.karmada, q, "Remedy "+remedies[0].Name, func(target *clusterv1alpha1.Cluster) bool {
		return slices.ContainsFunc(remedies, func(remedy *remedyv1alpha1.Remedy) bool {
			return cluster.IsRemedyTarget(&remedy.Spec, target.Name)
		})
	})
}
