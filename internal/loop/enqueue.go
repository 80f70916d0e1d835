package loop

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Queue is the queue of a controller.
type Queue[T comparable] = workqueue.TypedRateLimitingInterface[T]

// Priorities of queued items.
const (
	// LivePriority is for changes of an object itself.
	LivePriority = 0
	// LowPriority is for objects of an initial list, and for objects that are queued because
	// another object changed. Workers handle the objects that users change before these objects.
	LowPriority = handler.LowPriority
)

// PriorityOf returns the priority of an object that an informer delivers for the first time:
// LowPriority if the object is in the initial list, else LivePriority.
func PriorityOf(isInInitialList bool) int {
	if isInInitialList {
		return LowPriority
	}
	return LivePriority
}

// EnqueueLowPriority queues items with LowPriority after a delay. A delay of 0 queues the items at
// once. In a queue without priorities only the delay has an effect.
func EnqueueLowPriority[T comparable](queue Queue[T], delay time.Duration, items ...T) {
	if byPriority, ok := queue.(priorityqueue.PriorityQueue[T]); ok {
		byPriority.AddWithOpts(priorityqueue.AddOpts{After: delay, Priority: new(LowPriority)}, items...)
		return
	}
	for _, item := range items {
		queue.AddAfter(item, delay)
	}
}

// EnqueueClusters queues the Clusters that a changed object affects. cause names the object in the log.
func EnqueueClusters(ctx context.Context, from client.Reader, queue Queue[reconcile.Request], cause string,
	isAffected func(*clusterv1alpha1.Cluster) bool) {
	clusters := &clusterv1alpha1.ClusterList{}
	if err := from.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		// Only log the error, because a read from a cache fails only when the process ends.
		klog.FromContext(ctx).Error(err, "Cannot list the Clusters that an object affects", "cause", cause)
		return
	}
	for i := range clusters.Items {
		if cluster := &clusters.Items[i]; isAffected(cluster) {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cluster)})
		}
	}
}
