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

// backgroundStep is the distance in time between two bindings that are looked at
// because a cluster was lost or is back. That a status is old is no hurry, and
// there may be thousands of them.
const backgroundStep = 40 * time.Millisecond

// unreadySince is since when a cluster has not been ready; the zero time if it is
// ready, or nobody has looked yet.
func unreadySince(cluster *clusterv1alpha1.Cluster) time.Time {
	ready := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return time.Time{}
	}
	return ready.LastTransitionTime.Time
}

// circumstances are what is known of the clusters of a binding at this time.
func (r *reconciler) circumstances(ctx context.Context, of binding.Object) work.Circumstances {
	purged := binding.DirectlyPurged(of.BindingSpec())
	for name := range purged {
		// One that an administrator has given up is not waited for.
		if cluster := r.cluster(ctx, name); cluster != nil && cluster.DeclaredDead() {
			purged.Delete(name)
		}
	}
	return work.Circumstances{
		Unrendered: r.renderings.Of(of.GetUID()), Purged: purged, StatusBytes: r.statusBytes,
		Unready: func(name string) time.Time {
			if cluster := r.cluster(ctx, name); cluster != nil {
				return unreadySince(cluster)
			}
			return time.Time{}
		},
	}
}

// cluster is nil when the cache has none.
func (r *reconciler) cluster(ctx context.Context, name string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return cluster
}

// onCluster queues the bindings that have something in a cluster which was lost or
// is back, one after the other and behind everything else.
func (r *reconciler) onCluster() handler.Funcs {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			after, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			if !ok || !ok2 || unreadySince(before).Equal(unreadySince(after)) {
				return
			}
			if err := r.queueBindingsIn(ctx, after.Name, q); err != nil {
				klog.FromContext(ctx).Error(err, "The age of statuses is not told", "member", after.Name)
			}
		},
	}
}

func (r *reconciler) queueBindingsIn(ctx context.Context, cluster string, q queue) error {
	works := &workv1alpha1.WorkList{}
	if err := r.karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(cluster)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Works of cluster %q: %w", cluster, err)
	}
	for i := range works.Items {
		if request, ok := bindingOf(&works.Items[i]); ok {
			if delay, ok := r.background.take(request, r.now()); ok {
				addBehind(q, request, delay)
			}
		}
	}
	return nil
}

// addBehind queues a request behind all that is live.
func addBehind(q queue, request reconcile.Request, delay time.Duration) {
	byPriority, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		q.AddAfter(request, delay)
		return
	}
	byPriority.AddWithOpts(priorityqueue.AddOpts{After: delay, Priority: new(handler.LowPriority)}, request)
}

// slots spreads background work over time. A binding has one slot at most, so
// that clusters which come and go do not pile them up.
type slots struct {
	step time.Duration

	mu   sync.Mutex
	next time.Time
	held sets.Set[reconcile.Request]
}

func newSlots(step time.Duration) *slots {
	return &slots{step: step, held: sets.New[reconcile.Request]()}
}

// take gives a binding the next slot and tells how far off it is; ok is false if
// it has one already.
func (s *slots) take(request reconcile.Request, now time.Time) (delay time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held.Has(request) {
		return 0, false
	}
	s.held.Insert(request)
	if s.next.Before(now) {
		s.next = now
	}
	delay = s.next.Sub(now)
	s.next = s.next.Add(s.step)
	return delay, true
}

// free gives the slot of a binding back: it is looked at now.
func (s *slots) free(request reconcile.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held.Delete(request)
}
