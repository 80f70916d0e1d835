package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/clusteraffinity"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/lookup"
)

// source enqueues bindings for events. The controller starts no worker before WaitForSync has
// processed all clusters and bindings.
type source struct {
	scheduler     *scheduler
	ctx           context.Context //nolint:containedctx // handlers of informers are given none
	queue         priorityqueue.PriorityQueue[request]
	registrations []toolscache.ResourceEventHandlerRegistration
}

var errWrongQueue = errors.New("the scheduler needs a priority queue")

// Start implements source.TypedSource.
func (o *source) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	byPriority, ok := queue.(priorityqueue.PriorityQueue[request])
	if !ok {
		return errWrongQueue
	}
	o.ctx, o.queue = ctx, byPriority
	if err := o.registerQueueGauges(); err != nil {
		return err
	}
	return errors.Join(
		o.watch(&clusterv1alpha1.Cluster{}, o.clusterHandlers()),
		o.watch(&workv1alpha2.ResourceBinding{}, o.bindingHandlers()),
		o.watch(&workv1alpha2.ClusterResourceBinding{}, o.bindingHandlers()),
	)
}

func (o *source) registerQueueGauges() error {
	backlog := o.scheduler.backoff
	return errors.Join(
		o.scheduler.metrics.registerPendingGauge("active", o.queue.Len),
		o.scheduler.metrics.registerPendingGauge("backoff", func() int { return backlog.count(false) }),
		o.scheduler.metrics.registerPendingGauge("unschedulable", func() int { return backlog.count(true) }),
	)
}

func (o *source) watch(object client.Object, handlers toolscache.ResourceEventHandler) error {
	informer, err := o.scheduler.cache.GetInformer(o.ctx, object)
	if err != nil {
		return fmt.Errorf("watching %T: %w", object, err)
	}
	registration, err := informer.AddEventHandler(handlers)
	if err != nil {
		return fmt.Errorf("watching %T: %w", object, err)
	}
	o.registrations = append(o.registrations, registration)
	return nil
}

var errNotSynced = errors.New("the caches of clusters and bindings are not synced")

// WaitForSync implements source.TypedSyncingSource.
func (o *source) WaitForSync(ctx context.Context) error {
	for _, registration := range o.registrations {
		if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return errNotSynced
		}
	}
	return nil
}

func (o *source) bindingHandlers() toolscache.ResourceEventHandler {
	return loop.Handlers[binding.Object]{Added: o.bindingAdded, Updated: o.bindingUpdated, Deleted: o.bindingDeleted}
}

func (o *source) clusterHandlers() toolscache.ResourceEventHandler {
	return loop.Handlers[*clusterv1alpha1.Cluster]{Added: o.clusterAdded, Updated: o.clusterUpdated, Deleted: o.clusterDeleted}
}

func (o *source) bindingAdded(added binding.Object, initial bool) {
	if !o.scheduler.handles(added) {
		o.enqueueForOtherScheduler(added)
		return
	}
	u := urgencyLive
	if initial {
		u = urgencyBackground
	}
	o.enqueue(added, u, causeAdd)
}

func (o *source) bindingUpdated(older, newer binding.Object) {
	wasOwned, isOwned := o.scheduler.handles(older), o.scheduler.handles(newer)
	isOwnWrite := o.scheduler.ownWrites.IsOwn(requestOf(newer), newer)
	switch {
	case !isOwned:
		if wasOwned {
			o.scheduler.stopTracking(requestOf(newer))
		}
		o.enqueueForOtherScheduler(newer)
	case !wasOwned:
		o.enqueue(newer, urgencyLive, causeAdd)
	case isOwned && older.GetGeneration() != newer.GetGeneration() && !isOwnWrite:
		o.enqueue(newer, urgencyLive, causeUpdate)
	case isOwned && newer.GetAnnotations()[workv1alpha2.FailedInAnnotation] != older.GetAnnotations()[workv1alpha2.FailedInAnnotation]:
		// The binding is enqueued, because a cluster in which the workload failed recently may be
		// used again.
		o.enqueue(newer, urgencyBackground, causeUpdate)
	}
}

func (o *source) bindingDeleted(gone binding.Object) {
	o.scheduler.stopTracking(requestOf(gone))
	o.scheduler.unreported.remove(requestOf(gone))
}

// enqueueForOtherScheduler enqueues a binding that names another scheduler. The binding is
// processed at the end of the report timeout.
func (o *source) enqueueForOtherScheduler(bound binding.Object) {
	if delay, first := o.scheduler.remainingReportTime(bound); first {
		o.queue.AddWithOpts(priorityqueue.AddOpts{Priority: o.scheduler.priority(bound, urgencyBackground), After: delay}, requestOf(bound))
	}
}

// enqueue enqueues a binding and resets its backoff.
func (o *source) enqueue(bound binding.Object, u urgency, why cause) {
	if bound.GetDeletionTimestamp() != nil {
		return
	}
	r := requestOf(bound)
	o.scheduler.backoff.reset(r)
	o.scheduler.metrics.countEnqueued(why)
	o.queue.AddWithOpts(priorityqueue.AddOpts{Priority: o.scheduler.priority(bound, u)}, r)
}

func (o *source) clusterAdded(added *clusterv1alpha1.Cluster, initial bool) {
	o.scheduler.clusters.put(added, true)
	if initial {
		// Nothing is enqueued here, because all bindings are enqueued at start.
		return
	}
	o.enqueueAffected(added)
}

func (o *source) clusterUpdated(older, newer *clusterv1alpha1.Cluster) {
	hasMoreCapacity := mayHaveMoreCapacity(older, newer)
	o.scheduler.clusters.put(newer, hasMoreCapacity)
	switch {
	case affectsPlacements(older, newer):
		o.enqueueAffected(older, newer)
	case hasMoreCapacity:
		o.enqueueWaitingForCapacity(newer)
	}
}

func (o *source) clusterDeleted(gone *clusterv1alpha1.Cluster) {
	o.scheduler.clusters.remove(gone.Name)
	o.enqueueAffected(gone)
}

// enqueueAffected enqueues the bindings whose targets may depend on a cluster. states contains the
// states of this cluster before and after a change.
func (o *source) enqueueAffected(states ...*clusterv1alpha1.Cluster) {
	err := o.forEachCandidate(states, func(bound binding.Object) {
		isAffected := func(cluster *clusterv1alpha1.Cluster) bool {
			return placement.IsAffectedByCluster(cluster, bound, bound.BindingSpec(), bound.BindingStatus())
		}
		if o.scheduler.handles(bound) && slices.ContainsFunc(states, isAffected) {
			o.enqueue(bound, urgencyBackground, causeCluster)
		}
	})
	if err != nil && o.ctx.Err() == nil {
		klog.FromContext(o.ctx).Error(err, "Cannot find the bindings that a cluster affects", "member", states[0].Name)
	}
}

// forEachCandidate visits each binding that one of the states of a cluster may affect. It visits a
// binding only once.
func (o *source) forEachCandidate(states []*clusterv1alpha1.Cluster, visit func(binding.Object)) error {
	visited := sets.New[request]()
	for _, key := range clusteraffinity.ClusterKeys(states...) {
		for _, namespaced := range []bool{true, false} {
			candidates, err := lookup.Bindings(o.ctx, o.scheduler.karmada, namespaced, bindingsByClusterKey.Matching(key))
			if err != nil {
				return err
			}
			for _, bound := range candidates {
				if r := requestOf(bound); !visited.Has(r) {
					visited.Insert(r)
					visit(bound)
				}
			}
		}
	}
	return nil
}

// enqueueWaitingForCapacity enqueues the bindings that wait for capacity and that may use the given
// cluster, which has more capacity now.
func (o *source) enqueueWaitingForCapacity(cluster *clusterv1alpha1.Cluster) {
	for _, r := range o.scheduler.backoff.waitingForCapacity() {
		bound := binding.New(r.namespaced)
		// A binding that cannot be read is skipped. It is retried after its delay.
		if err := o.scheduler.karmada.Get(o.ctx, r.NamespacedName, bound, client.UnsafeDisableDeepCopy); err != nil {
			continue
		}
		if o.scheduler.handles(bound) && placement.IsAffectedByCluster(cluster, bound, bound.BindingSpec(), bound.BindingStatus()) {
			o.enqueue(bound, urgencyBackground, causeCluster)
		}
	}
}
