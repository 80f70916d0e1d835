package scheduler

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// deferredStatuses holds the bindings whose status does not show a success of the scheduler yet. The
// status controller reports such a success together with the next statuses of the clusters. The
// scheduler writes it only if this takes longer than a second, and slowly under load, because then
// the status controller is also late. A nil *deferredStatuses defers nothing.
type deferredStatuses struct {
	policy loop.PacingPolicy
	pacer  *loop.Pacer[request]
	queue  workqueue.TypedDelayingInterface[request]
}

func newDeferredStatuses(policy loop.PacingPolicy) *deferredStatuses {
	return &deferredStatuses{
		policy: policy, pacer: loop.NewPacer[request](policy, policy.BindingProgressPerSecond),
		queue: workqueue.NewTypedDelayingQueue[request](),
	}
}

// deferStatus defers the status write of a success that binding.ReportScheduled can report, and
// reports whether it did.
func (s *scheduler) deferStatus(p pass, out outcome) bool {
	if s.deferredStatuses == nil || out.err != nil {
		return false
	}
	deferred, now := binding.ShallowCopy(p.stored), metav1.NewTime(p.started)
	if !binding.ReportScheduled(deferred, now) {
		return false
	}
	reported := withReportedStatus(p.stored, out, p.stored.GetGeneration(), now)
	if !patch.Equal(deferred.BindingStatus().Conditions, reported.BindingStatus().Conditions) {
		return false // the condition must contain more, such as a note about estimators
	}
	s.requeueDeferred(p.request)
	return true
}

// requeueDeferred queues the deferred status of a binding until it is due. It reports false if the
// status is due now.
func (s *scheduler) requeueDeferred(r request) bool {
	d, now := s.deferredStatuses, s.now()
	wait := d.pacer.TurnDelay(r, now, d.policy.Settle, now)
	if wait > 0 {
		d.queue.AddAfter(r, wait)
	}
	return wait > 0
}

// writeDeferredStatuses writes the deferred statuses until ctx is canceled. The next leader reports
// the statuses that are still deferred then.
func (s *scheduler) writeDeferredStatuses(ctx context.Context) {
	defer context.AfterFunc(ctx, s.deferredStatuses.queue.ShutDown)()
	for {
		r, shutdown := s.deferredStatuses.queue.Get()
		if shutdown {
			return
		}
		if err := s.writeDeferredStatus(ctx, r); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Will write the status again", "binding", r, "cause", err)
			s.requeueDeferred(r)
		}
		s.deferredStatuses.queue.Done(r)
	}
}

// writeDeferredStatus writes the status of one binding if it is due and still not reported.
func (s *scheduler) writeDeferredStatus(ctx context.Context, r request) error {
	stored, err := s.readBinding(ctx, r)
	if err != nil {
		return err
	}
	if stored == nil || !s.handles(stored) {
		s.deferredStatuses.pacer.EndWait(r)
		return nil
	}
	reported := binding.ShallowCopy(stored)
	if !binding.ReportScheduled(reported, metav1.NewTime(s.now())) {
		s.deferredStatuses.pacer.EndWait(r)
		return nil
	}
	if s.requeueDeferred(r) {
		return nil
	}
	changed, err := s.updateStatus(ctx, stored, reported)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if changed {
		s.ownWrites.RecordState(r, reported)
	}
	return nil
}
