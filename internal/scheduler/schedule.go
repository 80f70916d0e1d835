package scheduler

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

// conflictRetryDelay is the retry delay of a binding that changed during its pass.
const conflictRetryDelay = 20 * time.Millisecond

// schedule selects clusters for the binding, writes them, and reports the outcome.
func (s *scheduler) schedule(ctx context.Context, p pass) reconcile.Result {
	defer s.reservedTargets.Delete(p.request)
	desired, out, changed := s.placeBinding(ctx, p)
	return s.recordOutcome(ctx, s.recordWrite(p, desired, changed), out)
}

// recordWrite tracks the written binding and returns the pass with it. It returns p itself if changed
// is false.
func (s *scheduler) recordWrite(p pass, desired binding.Object, changed bool) pass {
	if changed {
		s.assumptions.record(p.request, p.stored, desired, s.now())
		p.stored = desired
		s.ownWrites.RecordState(p.request, desired)
	}
	return p
}

// placeBinding selects clusters, and writes them together with the placement for which they were
// selected.
func (s *scheduler) placeBinding(ctx context.Context, p pass) (desired binding.Object, out outcome, changed bool) {
	desired, out, err := s.reserveTargets(ctx, p)
	if err != nil {
		desired, changed = s.removeTerminatingTargets(ctx, p)
		return desired, failedOutcome(p.stored, err), changed
	}
	if out.retry == retryAfterConflict {
		return p.stored, out, false
	}
	selectedAt := p.started
	if out.err != nil {
		selectedAt = time.Time{}
	}
	changed, err = s.writeTargets(ctx, p.stored, desired, selectedAt)
	if err != nil {
		s.assumptions.record(p.request, p.stored, p.stored, s.now())
		if apierrors.IsConflict(err) {
			// The API server may have lost the tracked write, for example because a backup was
			// restored. The cache would then never show it.
			s.ownWrites.Forget(p.request)
		}
		out = out.rejected(p.stored, err)
		if out.retry == retryAfterConflict || out.retry == retryNever {
			return p.stored, out, false
		}
		desired, changed = s.removeTerminatingTargets(ctx, p)
		return desired, out, changed
	}
	s.recordSuccessEvent(p, desired, out)
	if changed {
		klog.FromContext(ctx).Info("Scheduled",
			"why", p.decision.Reason, "clusters", placement.DescribeTargets(desired.BindingSpec()), "outcome", out.reason)
	}
	return desired, out, changed
}

// maxReservations is the maximum number of attempts to reserve a binding's targets in one pass.
const maxReservations = 5

// reserveTargets selects clusters and reserves them, so that no other binding is promised the same
// resources, and the binding's workload affinity groups see its new targets. If other bindings reserve
// first in each attempt, the outcome is retryAfterConflict. Bindings cannot block each other, because
// the first reservation always succeeds.
func (s *scheduler) reserveTargets(ctx context.Context, p pass) (binding.Object, outcome, error) {
	for range maxReservations {
		capacities := s.newEstimation(p)
		input, err := s.placementInput(ctx, p, capacities)
		if err != nil {
			return nil, outcome{}, err
		}
		result, err := placement.Schedule(input)
		desired, out := desiredBinding(p, result, err)
		out.failedEstimators = capacities.failures
		out = out.withLimits(capacities.describeLimits())
		if s.reserve(ctx, p, input.Peers, desired, capacities.assumedAt) {
			return desired, out, nil
		}
	}
	return p.stored, outcome{retry: retryAfterConflict}, nil
}

// removeTerminatingTargets removes terminating clusters from the binding's targets after scheduling or
// its write has failed. It only logs an error, because the binding is retried anyway.
func (s *scheduler) removeTerminatingTargets(ctx context.Context, p pass) (desired binding.Object, changed bool) {
	desired = binding.ShallowCopy(p.stored)
	spec := desired.BindingSpec()
	spec.Clusters = placement.WithoutTerminatingClusters(spec.Clusters, p.snapshot.find)
	if haveSameTargets(p.stored.BindingSpec().Clusters, spec.Clusters) {
		return p.stored, false
	}
	changed, err := s.writeTargets(ctx, p.stored, desired, time.Time{})
	if err != nil {
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			klog.FromContext(ctx).Error(err, "Cannot remove terminating clusters from the targets")
		}
		return p.stored, false
	}
	klog.FromContext(ctx).Info("Removed terminating clusters from the targets", "clusters", placement.DescribeTargets(spec))
	return desired, changed
}

func (s *scheduler) placementInput(ctx context.Context, p pass, capacities *estimation) (placement.Input, error) {
	peers, err := s.listPeers(ctx, p)
	if err != nil {
		return placement.Input{}, err
	}
	input := placement.NewInput(p.stored, p.started)
	input.Clusters, input.Peers = p.snapshot.clusters, peers
	input.EstimateReplicas = func(clusters []*clusterv1alpha1.Cluster) []int32 { return capacities.estimate(ctx, clusters) }
	input.Features, input.Plugins = s.options.Features, s.options.Plugins
	input.Observer = s.metrics.observer(s.now)
	return input, nil
}

// recordOutcome writes the outcome to the binding's status, records events and metrics, and returns
// when the binding is retried.
func (s *scheduler) recordOutcome(ctx context.Context, p pass, out outcome) reconcile.Result {
	if out.retry == retryAfterConflict {
		return reconcile.Result{RequeueAfter: conflictRetryDelay}
	}
	if apierrors.IsNotFound(out.err) {
		s.stopTracking(p.request)
		return reconcile.Result{}
	}
	out = out.withUnknownClusters(p.stored, p.snapshot.find).withFailedEstimators(p.stored)
	if s.deferStatus(p, out) {
		// The status is written later.
	} else if err := s.writeStatusNow(ctx, p, out); err != nil {
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: conflictRetryDelay}
		}
		out.err, out.message, out.retry = err, err.Error(), retryWithBackoff
	}
	s.recordFailureEvents(p, out)
	if p.decision.Action == placement.ActionSchedule {
		s.metrics.recordAttempt(p.decision.Type, out.err, s.now().Sub(p.started))
	}
	return s.scheduleRetry(ctx, p, out)
}

// scheduleRetry updates the binding's backoff and returns when the binding is retried.
func (s *scheduler) scheduleRetry(ctx context.Context, p pass, out outcome) reconcile.Result {
	if out.retry == retryNever {
		s.backoff.reset(p.request)
		return reconcile.Result{}
	}
	delay := s.backoff.recordFailure(p.request, out.retry)
	if out.retry == retryWhenCapacity && s.clusters.snapshot().capacityRevision != p.snapshot.capacityRevision {
		// A cluster's capacity has grown since this pass started. The binding was not waiting for
		// capacity at that time, so no event enqueues it.
		delay = min(delay, s.options.BaseDelay)
	}
	s.metrics.countEnqueued(causeFailure)
	klog.FromContext(ctx).V(2).Info("Will be tried again", "cause", out.err, "after", delay)
	return reconcile.Result{RequeueAfter: delay}
}
