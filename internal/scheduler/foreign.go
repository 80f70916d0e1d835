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
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

// foreign holds since when each binding that names another scheduler has a generation
// on which no scheduler has reported.
type foreign struct {
	mu    sync.Mutex
	since map[request]unreported
}

type unreported struct {
	generation int64
	at         time.Time
}

func newForeign() *foreign { return &foreign{since: map[request]unreported{}} }

// await notes that a generation of a binding lacks a report, and returns since when.
func (f *foreign) await(r request, generation int64, now time.Time) (since time.Time, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.since[r]; ok && known.generation == generation {
		return known.at, false
	}
	f.since[r] = unreported{generation: generation, at: now}
	return now, true
}

func (f *foreign) forget(r request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.since, r)
}

// awaitForeign returns how much longer another scheduler has to report on a binding
// that names it. It also reports whether the binding lacks that report since now; it
// is false for bindings that lack none.
func (s *scheduler) awaitForeign(of binding.Object) (left time.Duration, first bool) {
	r := requestOf(of)
	if !s.lacksReport(of) {
		s.foreign.forget(r)
		return 0, false
	}
	now := s.now()
	since, first := s.foreign.await(r, of.GetGeneration(), now)
	return since.Add(s.options.ForeignDelay).Sub(now), first
}

// lacksReport reports whether a binding names another scheduler, and none has said
// anything about its generation. Only the default scheduler looks after that: several
// schedulers would report on each other whenever one of them is busy.
func (s *scheduler) lacksReport(of binding.Object) bool {
	spec := of.BindingSpec()
	return s.options.Name == policyv1alpha1.DefaultSchedulerName && of.GetDeletionTimestamp() == nil && placement.Schedulable(of, spec) && !s.owns(of) &&
		placement.IsSchedulingUnreported(of.GetGeneration(), of.BindingStatus())
}

// reportUnserved says in the condition of a binding, nil if it is gone, that the
// scheduler which it names does not report. The write fails if that scheduler was
// faster, and a later report of it replaces the condition.
func (s *scheduler) reportUnserved(ctx context.Context, r request, stored binding.Object) (reconcile.Result, error) {
	if stored == nil || !s.lacksReport(stored) {
		s.foreign.forget(r)
		return reconcile.Result{}, nil
	}
	if left, _ := s.awaitForeign(stored); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	v := unserved(placement.SchedulerOf(stored.BindingSpec()))
	next := report(stored, v, stored.GetGeneration(), metav1.NewTime(s.now()))
	_, err := patch.Status(ctx, s.karmada, stored, next)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("recording that scheduler %q does not report: %w", stored.BindingSpec().SchedulerName, err)
	}
	s.foreign.forget(r)
	s.tellFailures(pass{request: r, stored: stored}, v)
	return reconcile.Result{}, nil
}

// unserved is the verdict on a binding whose scheduler does not report.
func unserved(name string) verdict {
	err := fmt.Errorf("no scheduler named %q has reported, so the object is not scheduled: "+
		"start a scheduler with --scheduler-name=%s, or correct spec.schedulerName of the policy", name, name)
	return verdict{err: err, reason: workv1alpha2.BindingReasonSchedulerNotReporting, message: err.Error()}
}
