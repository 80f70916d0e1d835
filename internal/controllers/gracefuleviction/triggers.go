package gracefuleviction

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/loop"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// hasEviction reports whether a binding has an eviction task, or the condition about held tasks.
func hasEviction(bound binding.Object) bool {
	return len(bound.BindingSpec().GracefulEvictionTasks) > 0 ||
		conditions.Get(bound.BindingStatus().Conditions, workv1alpha2.EvictionHeld) != nil
}

// newClusterHandler returns a handler that queues the bindings with evictions from or to a cluster.
// It does so if the cluster was deleted, or if its readiness, its taints or the annotation that
// declares it dead changed.
func (r *reconciler) newClusterHandler() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			older, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			newer, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			if ok && ok2 && requiresPass(older, newer) {
				r.enqueueBindings(ctx, q, newer.Name)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { r.enqueueBindings(ctx, q, e.Object.GetName()) },
	}
}

func requiresPass(older, newer *clusterv1alpha1.Cluster) bool {
	return !equality.Semantic.DeepEqual(older.Spec.Taints, newer.Spec.Taints) ||
		older.DeclaredDead() != newer.DeclaredDead() || isReady(older) != isReady(newer)
}

func isReady(cluster *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}

func (r *reconciler) enqueueBindings(ctx context.Context, q queue, cluster string) {
	targeting, err := loop.ListBindingsInCluster(ctx, r.karmada, r.namespaced, cluster)
	if err != nil {
		// The error is only logged, because a read from a cache fails only when the process ends.
		klog.FromContext(ctx).Error(err, "Cannot enqueue the evictions of a cluster", "member", cluster)
		return
	}
	for _, bound := range targeting {
		if len(bound.BindingSpec().GracefulEvictionTasks) > 0 {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bound)})
		}
	}
}
