package descheduler

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/loop"
)

// search is the event source of the queue: it periodically queues the bindings with candidates.
type search struct{ descheduler *descheduler }

// Start implements source.TypedSource. The first search starts immediately, and the searches stop
// when ctx is canceled.
func (s *search) Start(ctx context.Context, queue loop.Queue[reconcile.Request]) error {
	d := s.descheduler
	informer, err := d.cache.GetInformer(ctx, &workv1alpha2.ResourceBinding{})
	if err != nil {
		return fmt.Errorf("watching bindings: %w", err)
	}
	_, err = informer.AddEventHandler(loop.Handlers[*workv1alpha2.ResourceBinding]{Deleted: func(gone *workv1alpha2.ResourceBinding) {
		d.ownWrites.Forget(requestOf(gone))
	}})
	if err != nil {
		return fmt.Errorf("watching bindings: %w", err)
	}
	go d.searchPeriodically(ctx, queue)
	return nil
}

// searchPeriodically searches until ctx is canceled.
func (d *descheduler) searchPeriodically(ctx context.Context, queue loop.Queue[reconcile.Request]) {
	ticker := time.NewTicker(d.options.Interval)
	defer ticker.Stop()
	for {
		if err := d.enqueueCandidates(ctx, queue); err != nil && ctx.Err() == nil {
			// The error is only logged, because the next search repeats the read.
			klog.FromContext(ctx).Error(err, "Cannot search for bindings to deschedule")
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// enqueueCandidates queues the bindings with at least one candidate. It scans all cached bindings once
// per interval, which costs less than an index that would be updated at each status change.
func (d *descheduler) enqueueCandidates(ctx context.Context, queue loop.Queue[reconcile.Request]) error {
	bindings := &workv1alpha2.ResourceBindingList{}
	if err := d.karmada.List(ctx, bindings, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing bindings: %w", err)
	}
	findCluster := d.findCluster(ctx)
	for i := range bindings.Items {
		bound := &bindings.Items[i]
		r := requestOf(bound)
		if !d.ownWrites.IsStale(r, bound) && len(candidatesOf(bound, findCluster)) > 0 {
			queue.Add(r)
		}
	}
	return nil
}

func requestOf(bound *workv1alpha2.ResourceBinding) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bound)}
}
