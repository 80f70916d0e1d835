package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

// unreportedTracker tracks bindings that name another scheduler. For each of them, it stores since when
// the other scheduler has not reported on the current generation.
type unreportedTracker struct {
	mu      sync.Mutex
	waiting map[request]unreportedGeneration
}

type unreportedGeneration struct {
	generation int64
	since      time.Time
}

func newUnreportedTracker() *unreportedTracker {
	return &unreportedTracker{waiting: map[request]unreportedGeneration{}}
}

// track records that no scheduler has reported on the binding's generation. It returns the time of the
// first call for this generation, and whether this is the first call.
func (u *unreportedTracker) track(r request, generation int64, now time.Time) (since time.Time, first bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known, ok := u.waiting[r]; ok && known.generation == generation {
		return known.since, false
	}
	u.waiting[r] = unreportedGeneration{generation: generation, since: now}
	return now, true
}

func (u *unreportedTracker) remove(r request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.waiting, r)
}

// remainingReportTime returns how much longer the scheduler that the binding names may take to report.
// first is true if this call is the first one that found no report for this generation.
func (s *scheduler) remainingReportTime(bound binding.Object) (left time.Duration, first bool) {
	r := requestOf(bound)
	if !s.lacksReport(bound) {
		s.unreported.remove(r)
		return 0, false
	}
	now := s.now()
	since, first := s.unreported.track(r, bound.GetGeneration(), now)
	return since.Add(s.options.ReportTimeout).Sub(now), first
}

// lacksReport reports whether the binding names another scheduler that has not reported on the current
// generation. It always returns false in schedulers other than the default one, because they would
// otherwise report on each other whenever one of them is busy.
func (s *scheduler) lacksReport(bound binding.Object) bool {
	return s.options.Name == policyv1alpha1.DefaultSchedulerName && bound.GetDeletionTimestamp() == nil &&
		placement.IsSchedulable(bound, bound.BindingSpec()) && !s.handles(bound) &&
		placement.IsSchedulingUnreported(bound.GetGeneration(), bound.BindingStatus())
}

// recordMissingReport sets the condition Scheduled of the binding to SchedulerNotReporting when the
// report timeout is over. It does nothing if stored is nil. The write conflicts if the other scheduler
// has reported in the meantime, and a later report replaces the condition.
func (s *scheduler) recordMissingReport(ctx context.Context, r request, stored binding.Object) (reconcile.Result, error) {
	if stored == nil || !s.lacksReport(stored) {
		s.unreported.remove(r)
		return reconcile.Result{}, nil
	}
	if left, _ := s.remainingReportTime(stored); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	out := missingReportOutcome(placement.SchedulerName(stored.BindingSpec()))
	next := withReportedStatus(stored, out, stored.GetGeneration(), metav1.NewTime(s.now()))
	_, err := s.updateStatus(ctx, stored, next)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictRetryDelay}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("recording that scheduler %q does not report: %w", stored.BindingSpec().SchedulerName, err)
	}
	s.unreported.remove(r)
	s.recordFailureEvents(pass{request: r, stored: stored}, out)
	return reconcile.Result{}, nil
}

// missingReportOutcome returns the outcome for a binding whose scheduler does not report.
func missingReportOutcome(name string) outcome {
	err := fmt.Errorf("no scheduler named %q has reported, so the object is not scheduled: "+
		"start a scheduler with --scheduler-name=%s, or correct spec.schedulerName of the policy", name, name)
	return outcome{err: err, reason: workv1alpha2.BindingReasonSchedulerNotReporting, message: err.Error()}
}
