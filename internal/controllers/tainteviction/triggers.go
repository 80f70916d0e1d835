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
	"karmada.io/karmada/internal/access/bindings"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
)

type queue = workqueue.TypedRateLimitingInterface[request]

// clusters looks at everything in a cluster whose taints changed. What a cluster
// reports every few seconds changes none.
func (r *reconciler) clusters() source.TypedSource[request] {
	return source.TypedKind(r.cache, &clusterv1alpha1.Cluster{}, handler.TypedFuncs[*clusterv1alpha1.Cluster, request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*clusterv1alpha1.Cluster], q queue) {
			r.pushIn(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*clusterv1alpha1.Cluster], q queue) {
			if !equality.Semantic.DeepEqual(e.ObjectOld.Spec.Taints, e.ObjectNew.Spec.Taints) {
				r.pushIn(ctx, q, e.ObjectNew)
			}
		},
	})
}

// bindings looks at a binding that came to a tainted cluster, or tolerates its
// taints otherwise than before.
func (r *reconciler) bindings() source.TypedSource[request] {
	return source.TypedKind(r.cache, client.Object(binding.New(r.namespaced)), handler.TypedFuncs[client.Object, request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[client.Object], q queue) {
			r.pushOf(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[client.Object], q queue) {
			if decidesAnew(e.ObjectOld, e.ObjectNew) {
				r.pushOf(ctx, q, e.ObjectNew)
			}
		},
	})
}

// decidesAnew tells that a binding may be elsewhere than before, or tolerate other
// taints: those of the placement that was applied count, which is no part of its
// specification.
func decidesAnew(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() || applied(before) != applied(after)
}

func applied(of client.Object) string {
	return of.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
}

// pushIn queues the bindings in a cluster if it drives any out.
func (r *reconciler) pushIn(ctx context.Context, q queue, cluster *clusterv1alpha1.Cluster) {
	if !failover.Drives(cluster) || cluster.DeletionTimestamp != nil {
		return
	}
	found, err := bindings.OfCluster(ctx, r.karmada, r.namespaced, cluster.Name)
	if err != nil {
		// A cache answers unless the process ends.
		klog.FromContext(ctx).Error(err, "Nothing is evicted", "member", cluster.Name)
		return
	}
	for _, bound := range found {
		if failover.Targets(bound.BindingSpec(), cluster.Name) {
			r.push(q, bound, cluster.Name)
		}
	}
}

// pushOf queues a binding for each of its clusters that drives any out.
func (r *reconciler) pushOf(ctx context.Context, q queue, object client.Object) {
	bound, ok := object.(binding.Object)
	if !ok {
		return
	}
	for _, target := range bound.BindingSpec().Clusters {
		cluster := &clusterv1alpha1.Cluster{}
		// One that cannot be read is told of when it can.
		err := r.karmada.Get(ctx, types.NamespacedName{Name: target.Name}, cluster, client.UnsafeDisableDeepCopy)
		if err == nil && failover.Drives(cluster) {
			r.push(q, bound, target.Name)
		}
	}
}

func (r *reconciler) push(q queue, bound binding.Object, cluster string) {
	of := request{client.ObjectKeyFromObject(bound), cluster}
	r.backlog.put(of, bound.BindingSpec().Resource.Kind)
	q.Add(of)
}
