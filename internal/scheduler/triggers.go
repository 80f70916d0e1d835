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
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/clusteraffinity"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/loop"
)

// source is the event source of the scheduler's queue: it enqueues bindings when bindings, clusters or
// quotas change. The controller starts its workers after WaitForSync has returned, when all existing clusters
// and bindings are processed.
type source struct {
	scheduler     *scheduler
	ctx           context.Context //nolint:containedctx // handlers of informers are given none
	queue         priorityqueue.PriorityQueue[request]
	registrations []toolscache.ResourceEventHandlerRegistration
}

var errWrongQueue = errors.New("the scheduler needs a priority queue")

// Start implements source.TypedSource.
func (s *source) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	byPriority, ok := queue.(priorityqueue.PriorityQueue[request])
	if !ok {
		return errWrongQueue
	}
	s.ctx, s.queue = ctx, byPriority
	if err := s.registerQueueGauges(); err != nil {
		return err
	}
	s.scheduler.deferredEvents = newEventBacklog(func() bool { return byPriority.Len() >= busyQueueLength }, s.scheduler.now)
	go s.scheduler.deferredEvents.run(ctx)
	s.scheduler.deferredStatuses = newDeferredStatuses(loop.DefaultPacingPolicy())
	go s.scheduler.writeDeferredStatuses(ctx)
	return errors.Join(
		s.watch(&clusterv1alpha1.Cluster{}, s.clusterHandlers()),
		s.watch(&workv1alpha2.ResourceBinding{}, s.bindingHandlers()),
		s.watch(&workv1alpha2.ClusterResourceBinding{}, s.bindingHandlers()),
		s.watch(&policyv1alpha1.FederatedResourceQuota{}, s.quotaHandlers()),
	)
}

func (s *source) registerQueueGauges() error {
	backlog := s.scheduler.backoff
	return errors.Join(
		s.scheduler.metrics.registerPendingGauge("active", s.queue.Len),
		s.scheduler.metrics.registerPendingGauge("backoff", func() int { return backlog.count(false) }),
		s.scheduler.metrics.registerPendingGauge("unschedulable", func() int { return backlog.count(true) }),
	)
}

func (s *source) watch(object client.Object, handlers toolscache.ResourceEventHandler) error {
	informer, err := s.scheduler.cache.GetInformer(s.ctx, object)
	if err != nil {
		return fmt.Errorf("watching %T: %w", object, err)
	}
	registration, err := informer.AddEventHandler(handlers)
	if err != nil {
		return fmt.Errorf("watching %T: %w", object, err)
	}
	s.registrations = append(s.registrations, registration)
	return nil
}

var errNotSynced = errors.New("the caches of clusters and bindings are not synced")

// WaitForSync implements source.TypedSyncingSource.
func (s *source) WaitForSync(ctx context.Context) error {
	for _, registration := range s.registrations {
		if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return errNotSynced
		}
	}
	s.scheduler.options.Placer.Set(s.ctx, s.scheduler.placeNew) //nolint:contextcheck // ctx ends when all caches are filled
	return nil
}

func (s *source) bindingHandlers() toolscache.ResourceEventHandler {
	return loop.Handlers[binding.Object]{Added: s.handleBindingAdded, Updated: s.handleBindingUpdated, Deleted: s.handleBindingDeleted}
}

func (s *source) clusterHandlers() toolscache.ResourceEventHandler {
	return loop.Handlers[*clusterv1alpha1.Cluster]{
		Added: s.handleClusterAdded, Updated: s.handleClusterUpdated, Deleted: s.handleClusterDeleted,
	}
}

func (s *source) handleBindingAdded(added binding.Object, initial bool) {
	if !s.scheduler.handles(added) {
		s.enqueueForOtherScheduler(added)
		return
	}
	if !initial && s.scheduler.confirmPlacement(added) {
		return
	}
	u := urgencyLive
	if initial {
		u = urgencyBackground
	}
	s.enqueue(added, u, causeAdd)
}

func (s *source) handleBindingUpdated(older, newer binding.Object) {
	if older.GetUID() != newer.GetUID() { // the watch missed the deletion of the older binding
		s.handleBindingDeleted(older)
		s.handleBindingAdded(newer, false)
		return
	}
	wasOwned, isOwned := s.scheduler.handles(older), s.scheduler.handles(newer)
	s.scheduler.assumptions.releaseHealthy(older, newer)
	isOwnWrite := s.scheduler.ownWrites.IsOwn(requestOf(newer), newer)
	switch {
	case !isOwned:
		if wasOwned {
			s.scheduler.stopTracking(requestOf(newer))
		}
		s.enqueueForOtherScheduler(newer)
	case !wasOwned:
		s.enqueue(newer, urgencyLive, causeAdd)
	case isOwned && older.GetGeneration() != newer.GetGeneration() && !isOwnWrite:
		s.enqueue(newer, urgencyLive, causeUpdate)
	case isOwned && newer.GetAnnotations()[workv1alpha2.FailedInAnnotation] != older.GetAnnotations()[workv1alpha2.FailedInAnnotation]:
		// A cluster in which the workload failed may be used again.
		s.enqueue(newer, urgencyBackground, causeUpdate)
	}
}

func (s *source) handleBindingDeleted(gone binding.Object) {
	s.scheduler.stopTracking(requestOf(gone))
	s.scheduler.unreported.remove(requestOf(gone))
}

// enqueueForOtherScheduler enqueues a binding that names another scheduler, to be processed at the end
// of the report timeout. It does nothing if the binding is already tracked.
func (s *source) enqueueForOtherScheduler(bound binding.Object) {
	if delay, first := s.scheduler.remainingReportTime(bound); first {
		s.queue.AddWithOpts(priorityqueue.AddOpts{Priority: s.scheduler.priority(bound, urgencyBackground), After: delay}, requestOf(bound))
	}
}

// enqueue enqueues a binding and resets its backoff.
func (s *source) enqueue(bound binding.Object, u urgency, why cause) {
	if bound.GetDeletionTimestamp() != nil {
		return
	}
	r := requestOf(bound)
	s.scheduler.backoff.reset(r)
	s.scheduler.metrics.countEnqueued(why)
	s.queue.AddWithOpts(priorityqueue.AddOpts{Priority: s.scheduler.priority(bound, u)}, r)
}

func (s *source) handleClusterAdded(added *clusterv1alpha1.Cluster, initial bool) {
	s.scheduler.clusters.put(added, true)
	if initial {
		// All bindings are enqueued at start, so none is enqueued here.
		return
	}
	s.enqueueAffected(added)
}

func (s *source) handleClusterUpdated(older, newer *clusterv1alpha1.Cluster) {
	hasMoreCapacity := mayHaveMoreCapacity(older, newer)
	s.scheduler.clusters.put(newer, hasMoreCapacity)
	switch {
	case affectsPlacements(older, newer):
		s.enqueueAffected(older, newer)
	case hasMoreCapacity:
		s.enqueueWaitingForCapacity(newer)
	}
}

func (s *source) handleClusterDeleted(gone *clusterv1alpha1.Cluster) {
	s.scheduler.clusters.remove(gone.Name)
	s.enqueueAffected(gone)
}

// enqueueAffected enqueues the bindings whose targets may depend on the cluster. states holds the
// cluster's states before and after the change.
func (s *source) enqueueAffected(states ...*clusterv1alpha1.Cluster) {
	err := s.forEachCandidate(states, func(bound binding.Object) {
		isAffected := func(cluster *clusterv1alpha1.Cluster) bool {
			return placement.IsAffectedByCluster(cluster, bound, bound.BindingSpec(), bound.BindingStatus())
		}
		if s.scheduler.handles(bound) && slices.ContainsFunc(states, isAffected) {
			s.enqueue(bound, urgencyBackground, causeCluster)
		}
	})
	if err != nil && s.ctx.Err() == nil {
		klog.FromContext(s.ctx).Error(err, "Cannot find the bindings that a cluster affects", "member", states[0].Name)
	}
}

// forEachCandidate visits each binding that one of the cluster's states may affect, exactly once.
func (s *source) forEachCandidate(states []*clusterv1alpha1.Cluster, visit func(binding.Object)) error {
	visited := sets.New[request]()
	for _, key := range clusteraffinity.ClusterKeys(states...) {
		for _, namespaced := range []bool{true, false} {
			candidates, err := loop.ListBindings(s.ctx, s.scheduler.karmada, namespaced, bindingsByClusterKey.Matching(key))
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

// enqueueWaitingForCapacity enqueues the bindings that wait for capacity and may use the cluster, whose
// capacity has grown.
func (s *source) enqueueWaitingForCapacity(cluster *clusterv1alpha1.Cluster) {
	for _, r := range s.scheduler.backoff.waitingForCapacity() {
		bound := binding.New(r.namespaced)
		// A binding that cannot be read is retried after its delay.
		if err := s.scheduler.karmada.Get(s.ctx, r.NamespacedName, bound, client.UnsafeDisableDeepCopy); err != nil {
			continue
		}
		if s.scheduler.handles(bound) && placement.IsAffectedByCluster(cluster, bound, bound.BindingSpec(), bound.BindingStatus()) {
			s.enqueue(bound, urgencyBackground, causeCluster)
		}
	}
}
