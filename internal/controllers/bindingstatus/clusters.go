package bindingstatus

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
)

// backgroundInterval is the interval between two bindings that are queued because a cluster
// was lost or returned. Marking a status as old is not urgent, and thousands of bindings may
// be affected.
const backgroundInterval = 40 * time.Millisecond

// unreadySince returns since when a cluster has not been ready. It returns the zero time if
// the cluster is ready, or has no Ready condition yet.
func unreadySince(cluster *clusterv1alpha1.Cluster) time.Time {
	ready := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return time.Time{}
	}
	return ready.LastTransitionTime.Time
}

// clusterStates returns the known facts about the clusters of a binding.
func (r *reconciler) clusterStates(ctx context.Context, bound binding.Object) work.AggregateOptions {
	purged := binding.DirectlyPurgedClusters(bound.BindingSpec())
	for name := range purged {
		// A cluster that an administrator declared dead is not waited for.
		if cluster := r.cachedCluster(ctx, name); cluster != nil && cluster.DeclaredDead() {
			purged.Delete(name)
		}
	}
	return work.AggregateOptions{
		RenderErrors: r.renderings.Get(bound.GetUID()), PurgedClusters: purged, MaxStatusBytes: r.statusBytes,
		NotReadySince: func(name string) time.Time {
			if cluster := r.cachedCluster(ctx, name); cluster != nil {
				return unreadySince(cluster)
			}
			return time.Time{}
		},
	}
}

// cachedCluster returns nil when the cache has no entry for the cluster.
func (r *reconciler) cachedCluster(ctx context.Context, name string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return cluster
}

// onCluster queues the bindings with Works in a cluster that was lost or returned. They are
// queued at intervals and with low priority.
func (r *reconciler) onCluster() handler.Funcs {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			after, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			if !ok || !ok2 || unreadySince(before).Equal(unreadySince(after)) {
				return
			}
			if err := r.enqueueBindingsOf(ctx, after.Name, q); err != nil {
				klog.FromContext(ctx).Error(err, "Statuses of the cluster are not marked as old", "member", after.Name)
			}
		},
	}
}

func (r *reconciler) enqueueBindingsOf(ctx context.Context, cluster string, q queue) error {
	works := &workv1alpha1.WorkList{}
	if err := r.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Works of cluster %q: %w", cluster, err)
	}
	for i := range works.Items {
		if request, ok := bindingOfWork(&works.Items[i]); ok {
			if delay, ok := r.background.reserve(request, r.now()); ok {
				enqueueLowPriority(q, request, delay)
			}
		}
	}
	return nil
}

// enqueueLowPriority queues a request behind all requests of normal priority.
func enqueueLowPriority(q queue, request reconcile.Request, delay time.Duration) {
	byPriority, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		q.AddAfter(request, delay)
		return
	}
	byPriority.AddWithOpts(priorityqueue.AddOpts{After: delay, Priority: new(handler.LowPriority)}, request)
}

// backgroundSchedule spreads background reconciles over time. A binding has at most one slot,
// so that clusters that are lost and return repeatedly do not accumulate slots.
type backgroundSchedule struct {
	interval time.Duration

	mu       sync.Mutex
	nextSlot time.Time
	reserved sets.Set[reconcile.Request]
}

func newBackgroundSchedule(step time.Duration) *backgroundSchedule {
	return &backgroundSchedule{interval: step, reserved: sets.New[reconcile.Request]()}
}

// reserve gives a binding the next slot and returns the delay until then. ok is false if the
// binding has a slot already.
func (s *backgroundSchedule) reserve(request reconcile.Request, now time.Time) (delay time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reserved.Has(request) {
		return 0, false
	}
	s.reserved.Insert(request)
	if s.nextSlot.Before(now) {
		s.nextSlot = now
	}
	delay = s.nextSlot.Sub(now)
	s.nextSlot = s.nextSlot.Add(s.interval)
	return delay, true
}

// release removes the slot of a binding that is reconciled now.
func (s *backgroundSchedule) release(request reconcile.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved.Delete(request)
}
