package scheduler

import (
	"context"
	"errors"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

// source turns events into queued bindings. The controller starts no worker before
// WaitForSync has seen all clusters and bindings.
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
	if err := o.measure(); err != nil {
		return err
	}
	return errors.Join(
		o.watch(&clusterv1alpha1.Cluster{}, toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: o.clusterAdded, UpdateFunc: o.clusterUpdated, DeleteFunc: o.clusterDeleted,
		}),
		o.watch(&workv1alpha2.ResourceBinding{}, o.bindings()),
		o.watch(&workv1alpha2.ClusterResourceBinding{}, o.bindings()),
	)
}

func (o *source) measure() error {
	backlog := o.scheduler.backlog
	return errors.Join(
		o.scheduler.measured.pending("active", o.queue.Len),
		o.scheduler.measured.pending("backoff", func() int { return backlog.count(false) }),
		o.scheduler.measured.pending("unschedulable", func() int { return backlog.count(true) }),
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

var errNotSynced = errors.New("not all clusters and bindings are known")

// WaitForSync implements source.TypedSyncingSource.
func (o *source) WaitForSync(ctx context.Context) error {
	for _, registration := range o.registrations {
		if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return errNotSynced
		}
	}
	return nil
}

func (o *source) bindings() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: o.bindingAdded, UpdateFunc: o.bindingUpdated, DeleteFunc: o.bindingDeleted,
	}
}

func (o *source) bindingAdded(obj any, initial bool) {
	added, ok := obj.(binding.Object)
	if !ok {
		return
	}
	if !o.scheduler.owns(added) {
		o.pushForeign(added)
		return
	}
	u := live
	if initial {
		u = background
	}
	o.push(added, u, causeAdd)
}

func (o *source) bindingUpdated(before, after any) {
	older, ok := before.(binding.Object)
	newer, ok2 := after.(binding.Object)
	if !ok || !ok2 {
		return
	}
	owned, owns := o.scheduler.owns(older), o.scheduler.owns(newer)
	known := o.scheduler.recent.known(requestOf(newer), newer)
	switch {
	case !owns:
		if owned {
			o.scheduler.forget(requestOf(newer))
		}
		o.pushForeign(newer)
	case !owned:
		o.push(newer, live, causeAdd)
	case owns && older.GetGeneration() != newer.GetGeneration() && !known:
		o.push(newer, live, causeUpdate)
	case owns && newer.GetAnnotations()[workv1alpha2.FailedInAnnotation] != older.GetAnnotations()[workv1alpha2.FailedInAnnotation]:
		// A cluster that was avoided may have it again.
		o.push(newer, background, causeUpdate)
	}
}

func (o *source) bindingDeleted(obj any) {
	if gone, ok := final(obj).(binding.Object); ok {
		o.scheduler.forget(requestOf(gone))
		o.scheduler.foreign.forget(requestOf(gone))
	}
}

// pushForeign queues a binding that names another scheduler for the time when that
// has to have reported on it.
func (o *source) pushForeign(of binding.Object) {
	if delay, first := o.scheduler.awaitForeign(of); first {
		o.queue.AddWithOpts(priorityqueue.AddOpts{Priority: o.scheduler.priority(of, background), After: delay}, requestOf(of))
	}
}

// push queues a binding; its earlier failures no longer count.
func (o *source) push(of binding.Object, u urgency, why cause) {
	if of.GetDeletionTimestamp() != nil {
		return
	}
	r := requestOf(of)
	o.scheduler.backlog.settle(r)
	o.scheduler.measured.queued(why)
	o.queue.AddWithOpts(priorityqueue.AddOpts{Priority: o.scheduler.priority(of, u)}, r)
}

func (o *source) clusterAdded(obj any, initial bool) {
	added, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok {
		return
	}
	o.scheduler.clusters.put(added, true)
	if initial {
		// All bindings are queued at start anyway.
		return
	}
	o.pushAffected(added)
}

func (o *source) clusterUpdated(before, after any) {
	older, ok := before.(*clusterv1alpha1.Cluster)
	newer, ok2 := after.(*clusterv1alpha1.Cluster)
	if !ok || !ok2 {
		return
	}
	roomier := hasMoreRoom(older, newer)
	o.scheduler.clusters.put(newer, roomier)
	switch {
	case concernsPlacements(older, newer):
		o.pushAffected(older, newer)
	case roomier:
		o.wake(newer)
	}
}

func (o *source) clusterDeleted(obj any) {
	gone, ok := final(obj).(*clusterv1alpha1.Cluster)
	if !ok {
		return
	}
	o.scheduler.clusters.remove(gone.Name)
	o.pushAffected(gone)
}

// pushAffected queues the bindings whose place may depend on a cluster, given in
// its states before and after a change.
func (o *source) pushAffected(states ...*clusterv1alpha1.Cluster) {
	err := o.scan(func(of binding.Object) {
		for _, cluster := range states {
			if o.scheduler.owns(of) && placement.IsAffectedByCluster(cluster, of, of.BindingSpec(), of.BindingStatus()) {
				o.push(of, background, causeCluster)
				return
			}
		}
	})
	if err != nil && o.ctx.Err() == nil {
		klog.FromContext(o.ctx).Error(err, "Cannot find the bindings that a cluster affects", "member", states[0].Name)
	}
}

// scan shows all bindings of the cache as they are, without copying them.
func (o *source) scan(look func(binding.Object)) error {
	namespaced := &workv1alpha2.ResourceBindingList{}
	if err := o.scheduler.karmada.List(o.ctx, namespaced, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ResourceBindings: %w", err)
	}
	for i := range namespaced.Items {
		look(&namespaced.Items[i])
	}
	clusterWide := &workv1alpha2.ClusterResourceBindingList{}
	if err := o.scheduler.karmada.List(o.ctx, clusterWide, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ClusterResourceBindings: %w", err)
	}
	for i := range clusterWide.Items {
		look(&clusterWide.Items[i])
	}
	return nil
}

// wake queues the bindings that wait for room in a cluster which has more now.
func (o *source) wake(cluster *clusterv1alpha1.Cluster) {
	for _, r := range o.scheduler.backlog.forRoom() {
		of := binding.New(r.namespaced)
		// One that cannot be read is tried again anyway when its time has come.
		if err := o.scheduler.karmada.Get(o.ctx, r.NamespacedName, of, client.UnsafeDisableDeepCopy); err != nil {
			continue
		}
		if o.scheduler.owns(of) && placement.IsAffectedByCluster(cluster, of, of.BindingSpec(), of.BindingStatus()) {
			o.push(of, background, causeCluster)
		}
	}
}

func final(obj any) any {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
}
