package scheduler

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/placement"
)

const (
	// conflictDelay is how long the cache gets to catch up with a binding that
	// somebody else has changed.
	conflictDelay = 50 * time.Millisecond
	// statusTries bounds the tries to write a status that others write, too.
	statusTries = 4
)

// schedule chooses clusters and stores them.
func (s *scheduler) schedule(ctx context.Context, p pass) reconcile.Result {
	desired, v, moved := s.place(ctx, p)
	return s.finish(ctx, s.stored(p, desired, moved), v)
}

// stored is the pass over what a write has stored, if there was one.
func (s *scheduler) stored(p pass, desired binding.Object, moved bool) pass {
	if moved {
		p.stored = desired
		s.recent.remember(p.request, desired)
	}
	return p
}

// place chooses clusters and stores them with the placement they were chosen for.
func (s *scheduler) place(ctx context.Context, p pass) (desired binding.Object, v verdict, moved bool) {
	if s.inGroup(p.stored) {
		s.grouped.Lock()
		defer s.grouped.Unlock()
	}
	input, err := s.input(ctx, p)
	if err != nil {
		desired, moved = s.leave(ctx, p)
		return desired, failed(p.stored, err), moved
	}
	result, err := placement.Schedule(input)
	desired, v = outcome(p.stored, result, err)
	moved, err = patch.Object(ctx, s.karmada, p.stored, desired)
	if err != nil {
		if apierrors.IsConflict(err) {
			// What was remembered may be no state of the binding any more, as after the
			// restore of a backup.
			s.recent.forget(p.request)
		}
		v = v.refused(p.stored, err)
		if v.retry == soon || v.retry == never {
			return p.stored, v, false
		}
		desired, moved = s.leave(ctx, p)
		return desired, v, moved
	}
	s.tellResult(p, desired, v)
	if moved {
		klog.FromContext(ctx).Info("Placed", "why", p.decision.Reason, "clusters", placement.DescribeTargets(desired.BindingSpec()), "outcome", v.reason)
	}
	return desired, v, moved
}

// leave takes the clusters being removed out of a binding about which nothing else can
// be decided or stored. The binding is tried again anyway, so a failure is no more
// than logged.
func (s *scheduler) leave(ctx context.Context, p pass) (desired binding.Object, moved bool) {
	desired = binding.Copy(p.stored)
	spec := desired.BindingSpec()
	spec.Clusters = placement.WithoutTerminatingClusters(spec.Clusters, p.world.find)
	if sameTargets(p.stored.BindingSpec().Clusters, spec.Clusters) {
		return p.stored, false
	}
	moved, err := patch.Object(ctx, s.karmada, p.stored, desired)
	if err != nil {
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			klog.FromContext(ctx).Error(err, "Cannot take clusters that are being removed out of the binding")
		}
		return p.stored, false
	}
	klog.FromContext(ctx).Info("Left clusters that are being removed", "clusters", placement.DescribeTargets(spec))
	return desired, moved
}

func (s *scheduler) input(ctx context.Context, p pass) (placement.Input, error) {
	peers, err := s.peers(ctx, p)
	if err != nil {
		return placement.Input{}, err
	}
	return placement.Input{
		Spec: p.stored.BindingSpec(), Status: p.stored.BindingStatus(), AppliedPlacement: applied(p.stored),
		Clusters: p.world.clusters, EstimateReplicas: s.estimate(ctx, p.stored.BindingSpec()),
		Features: s.options.Features, Plugins: s.options.Plugins, Peers: peers,
		AvoidClusters: failover.FailuresOf(p.stored, p.started).Avoided(), AvoidStrictly: failover.KeepsFailedCopy(p.stored.BindingSpec()), Now: p.started,
		Observer: s.measured.observer(s.now),
	}, nil
}

// finish records the verdict on the binding and says when to look again.
func (s *scheduler) finish(ctx context.Context, p pass, v verdict) reconcile.Result {
	if v.retry == soon {
		return reconcile.Result{RequeueAfter: conflictDelay}
	}
	if apierrors.IsNotFound(v.err) {
		s.forget(p.request)
		return reconcile.Result{}
	}
	v = v.remarking(p.stored, p.world.find)
	if err := s.record(ctx, p, v); err != nil {
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: conflictDelay}
		}
		v.err, v.message, v.retry = err, err.Error(), later
	}
	s.tellFailures(p, v)
	if p.decision.Action == placement.ActionSchedule {
		s.measured.attempted(p.decision.Type, v.err, s.now().Sub(p.started))
	}
	return s.next(ctx, p, v)
}

// next says when the binding is looked at again.
func (s *scheduler) next(ctx context.Context, p pass, v verdict) reconcile.Result {
	if v.retry == never {
		s.backlog.settle(p.request)
		return reconcile.Result{}
	}
	delay := s.backlog.fail(p.request, v.retry)
	if v.retry == whenRoom && s.clusters.snapshot().room != p.world.room {
		// There is more room than when this pass started; nobody will say so
		// again.
		delay = min(delay, s.options.BaseDelay)
	}
	s.measured.queued(causeFailure)
	klog.FromContext(ctx).V(2).Info("Will be tried again", "cause", v.err, "after", delay)
	return reconcile.Result{RequeueAfter: delay}
}

// record writes the status. Others write into it at the same time, and whether the
// result is told must not depend on luck, so a conflict is resolved at once. The
// time is that of the look, so that a reschedule requested since is still later.
func (s *scheduler) record(ctx context.Context, p pass, v verdict) error {
	current, generation, now := p.stored, p.stored.GetGeneration(), metav1.NewTime(p.started)
	for try := 1; ; try++ {
		next := report(current, v, generation, now)
		changed, err := patch.Status(ctx, s.karmada, current, next)
		switch {
		case err == nil:
			// What others changed meanwhile has still to be looked at.
			if changed && next.GetGeneration() == generation {
				s.recent.remember(p.request, next)
			}
			return nil
		case apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err) || try == statusTries:
			return err
		}
		current = binding.New(p.request.namespaced)
		if err := s.live.Get(ctx, p.request.NamespacedName, current); err != nil {
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("reading the binding again: %w", err)
		}
	}
}
