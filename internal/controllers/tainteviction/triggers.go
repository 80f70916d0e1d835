package tainteviction

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/loop"
)

type queue = workqueue.TypedRateLimitingInterface[request]

// clusterSource queues the bindings in a cluster whose taints changed. It ignores the regular
// status updates of a cluster, because they change no taints.
func (r *reconciler) clusterSource() source.TypedSource[request] {
	return source.TypedKind(r.cache, &clusterv1alpha1.Cluster{}, handler.TypedFuncs[*clusterv1alpha1.Cluster, request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*clusterv1alpha1.Cluster], q queue) {
			r.enqueueBindingsOfCluster(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*clusterv1alpha1.Cluster], q queue) {
			if !equality.Semantic.DeepEqual(e.ObjectOld.Spec.Taints, e.ObjectNew.Spec.Taints) {
				r.enqueueBindingsOfCluster(ctx, q, e.ObjectNew)
			}
		},
	})
}

// bindingSource queues a binding that was scheduled to a tainted cluster, or whose tolerations
// changed.
func (r *reconciler) bindingSource() source.TypedSource[request] {
	return source.TypedKind(r.cache, client.Object(binding.New(r.namespaced)), handler.TypedFuncs[client.Object, request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[client.Object], q queue) {
			r.enqueueBinding(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[client.Object], q queue) {
			if requiresPass(e.ObjectOld, e.ObjectNew) {
				r.enqueueBinding(ctx, q, e.ObjectNew)
			}
		},
	})
}

// requiresPass reports whether the clusters or the tolerations of a binding may have changed. It
// also compares the applied placement, which is an annotation and thus does not increase the
// generation.
func requiresPass(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() || appliedPlacement(before) != appliedPlacement(after)
}

func appliedPlacement(object client.Object) string {
	return object.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
}

// enqueueBindingsOfCluster queues the bindings in a cluster if the cluster has taints that evict.
func (r *reconciler) enqueueBindingsOfCluster(ctx context.Context, q queue, cluster *clusterv1alpha1.Cluster) {
	if !failover.HasEvictingTaint(cluster) || cluster.DeletionTimestamp != nil {
		return
	}
	targeting, err := loop.ListBindingsInCluster(ctx, r.karmada, r.namespaced, cluster.Name)
	if err != nil {
		// The error is only logged, because a read from a cache fails only when the process ends.
		klog.FromContext(ctx).Error(err, "Cannot enqueue evictions from a cluster", "member", cluster.Name)
		return
	}
	for _, bound := range targeting {
		if failover.HasTarget(bound.BindingSpec(), cluster.Name) {
			r.enqueueRequest(q, bound, cluster.Name)
		}
	}
}

// enqueueBinding queues a binding for each of its clusters that has taints that evict.
func (r *reconciler) enqueueBinding(ctx context.Context, q queue, object client.Object) {
	bound, ok := object.(binding.Object)
	if !ok {
		return
	}
	for _, target := range bound.BindingSpec().Clusters {
		cluster := &clusterv1alpha1.Cluster{}
		// A Cluster that is not in the cache yet is skipped, because the event of its creation
		// queues the binding.
		err := r.karmada.Get(ctx, types.NamespacedName{Name: target.Name}, cluster, client.UnsafeDisableDeepCopy)
		if err == nil && failover.HasEvictingTaint(cluster) {
			r.enqueueRequest(q, bound, target.Name)
		}
	}
}

func (r *reconciler) enqueueRequest(q queue, bound binding.Object, cluster string) {
	req := request{client.ObjectKeyFromObject(bound), cluster}
	r.backlog.add(req, bound.BindingSpec().Resource.Kind)
	q.Add(req)
}
