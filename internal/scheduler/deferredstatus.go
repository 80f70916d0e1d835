package scheduler

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// deferredStatuses holds successes of the scheduler that the status of their bindings does not show yet.
// The status controller reports such a success together with the next statuses of the clusters. The
// scheduler writes it only if this takes longer than a second, and slowly under load, because then the
// status controller is also late. A nil *deferredStatuses defers nothing.
type deferredStatuses struct {
	policy loop.PacingPolicy
	pacer  *loop.Pacer[request]
	queue  workqueue.TypedDelayingInterface[request]

	mu      sync.Mutex
	pending map[request]deferredStatus
}

// deferredStatus is the outcome of the pass that started at the given time, for one generation.
type deferredStatus struct {
	generation int64
	started    time.Time
	out        outcome
}

// maxDeferral is the maximum time for which many statuses at once are deferred. Clients that wait for the
// condition Scheduled wait this long at most.
const maxDeferral = 30 * time.Second

func newDeferredStatuses(policy loop.PacingPolicy) *deferredStatuses {
	policy.MaxProgressDelay = min(policy.MaxProgressDelay, maxDeferral)
	return &deferredStatuses{
		policy: policy, pacer: loop.NewPacer[request](policy, policy.BindingProgressPerSecond),
		queue: workqueue.NewTypedDelayingQueue[request](), pending: map[request]deferredStatus{},
	}
}

// put stores a status and queues its binding. It replaces an earlier status of the binding.
func (d *deferredStatuses) put(r request, status deferredStatus, now time.Time) {
	d.mu.Lock()
	d.pending[r] = status
	d.mu.Unlock()
	d.queue.AddAfter(r, d.pacer.TurnDelay(r, now, d.policy.Settle, now))
}

func (d *deferredStatuses) get(r request) (status deferredStatus, isPending bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	status, isPending = d.pending[r]
	return status, isPending
}

// remove removes the status for one generation of a binding.
func (d *deferredStatuses) remove(r request, generation int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending[r].generation == generation {
		delete(d.pending, r)
		d.pacer.EndWait(r)
	}
}

// deferStatus defers the status write of a success that binding.ReportScheduled can report completely,
// and reports whether it did.
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
	s.deferredStatuses.put(p.request, deferredStatus{generation: p.stored.GetGeneration(), started: p.started, out: out}, s.now())
	return true
}

// writeStatusNow writes the status of a pass, which replaces a deferred status.
func (s *scheduler) writeStatusNow(ctx context.Context, p pass, out outcome) error {
	if s.deferredStatuses != nil {
		s.deferredStatuses.remove(p.request, p.stored.GetGeneration())
	}
	return s.writeStatus(ctx, p, out)
}

// writeDeferredStatuses writes the deferred statuses until ctx is canceled. The next leader reports
// the statuses that are still deferred then.
func (s *scheduler) writeDeferredStatuses(ctx context.Context) {
	queue := s.deferredStatuses.queue
	defer context.AfterFunc(ctx, queue.ShutDown)()
	for {
		r, shutdown := queue.Get()
		if shutdown {
			return
		}
		if delay := s.writeDeferredStatus(ctx, r); delay > 0 {
			queue.AddAfter(r, delay)
		}
		queue.Done(r)
	}
}

// writeDeferredStatus writes the status of one binding if it is due and still not reported. It returns
// the delay of the next attempt, or 0 if none is needed.
func (s *scheduler) writeDeferredStatus(ctx context.Context, r request) (delay time.Duration) {
	d := s.deferredStatuses
	deferred, isPending := d.get(r)
	if !isPending {
		return 0
	}
	stored, err := s.readBinding(ctx, r)
	if err != nil {
		return s.options.BaseDelay
	}
	if stored == nil || !s.handles(stored) || stored.GetGeneration() != deferred.generation ||
		stored.BindingStatus().SchedulerObservedGeneration == deferred.generation {
		d.remove(r, deferred.generation)
		return 0
	}
	now := s.now()
	if wait := d.pacer.TurnDelay(r, now, d.policy.Settle, now); wait > 0 {
		return wait
	}
	if err := s.writeStatus(ctx, pass{request: r, stored: stored, started: deferred.started}, deferred.out); err != nil {
		klog.FromContext(ctx).Error(err, "Will write the status again", "binding", r, "after", s.options.BaseDelay)
		return s.options.BaseDelay
	}
	d.remove(r, deferred.generation)
	return 0
}
