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

// conflictRetryDelay is the delay before the next pass over a binding that changed during a pass.
const conflictRetryDelay = 20 * time.Millisecond

// schedule chooses clusters for a binding, stores them, and reports the result.
func (s *scheduler) schedule(ctx context.Context, p pass) reconcile.Result {
	defer s.reservedTargets.Delete(p.request)
	desired, v, changed := s.placeBinding(ctx, p)
	return s.finish(ctx, s.withStored(p, desired, changed), v)
}

// withStored returns the pass with the written binding if a write changed the binding.
func (s *scheduler) withStored(p pass, desired binding.Object, changed bool) pass {
	if changed {
		s.assumptions.record(p.request, p.stored, desired, s.now())
		p.stored = desired
		s.ownWrites.RecordState(p.request, desired)
	}
	return p
}

// placeBinding chooses clusters, and stores these clusters together with the placement for which
// they were chosen.
func (s *scheduler) placeBinding(ctx context.Context, p pass) (desired binding.Object, v verdict, changed bool) {
	desired, v, err := s.reserveTargets(ctx, p)
	if err != nil {
		desired, changed = s.removeTerminatingTargets(ctx, p)
		return desired, failedVerdict(p.stored, err), changed
	}
	if v.retry == retryAfterConflict {
		return p.stored, v, false
	}
	changed, err = s.writeTargets(ctx, p.stored, desired)
	if err != nil {
		s.assumptions.record(p.request, p.stored, p.stored, s.now())
		if apierrors.IsConflict(err) {
			// The tracked write is dropped, because the API server may have lost it, for example
			// after the restore of a backup.
			s.ownWrites.Forget(p.request)
		}
		v = v.rejected(p.stored, err)
		if v.retry == retryAfterConflict || v.retry == retryNever {
			return p.stored, v, false
		}
		desired, changed = s.removeTerminatingTargets(ctx, p)
		return desired, v, changed
	}
	s.recordSuccessEvent(p, desired, v)
	if changed {
		klog.FromContext(ctx).Info("Scheduled", "why", p.decision.Reason, "clusters", placement.DescribeTargets(desired.BindingSpec()), "outcome", v.reason)
	}
	return desired, v, changed
}

// maxReservations is the maximum number of attempts to reserve the targets of a binding in one pass.
const maxReservations = 5

// reserveTargets chooses clusters, and reserves their resources, so that no other binding gets the
// same resources, and no other binding of its workload affinity groups ignores the choice. If other
// bindings always reserve them first, the verdict is to retry soon. The first of these bindings
// always succeeds, so that bindings cannot block each other.
func (s *scheduler) reserveTargets(ctx context.Context, p pass) (binding.Object, verdict, error) {
	for range maxReservations {
		capacities := s.newEstimation(p)
		input, err := s.placementInput(ctx, p, capacities)
		if err != nil {
			return nil, verdict{}, err
		}
		result, err := placement.Schedule(input)
		desired, v := desiredBinding(p, result, err)
		v.failedEstimators = capacities.failures
		v = v.withLimits(capacities.describeLimits())
		if s.reserve(ctx, p, input.Peers, desired, capacities.assumedAt) {
			return desired, v, nil
		}
	}
	return p.stored, verdict{retry: retryAfterConflict}, nil
}

// removeTerminatingTargets removes terminating clusters from a binding after its scheduling or its
// write failed. It does not return an error but logs it, because the binding is retried anyway.
func (s *scheduler) removeTerminatingTargets(ctx context.Context, p pass) (desired binding.Object, changed bool) {
	desired = binding.ShallowCopy(p.stored)
	spec := desired.BindingSpec()
	spec.Clusters = placement.WithoutTerminatingClusters(spec.Clusters, p.snapshot.find)
	if sameTargets(p.stored.BindingSpec().Clusters, spec.Clusters) {
		return p.stored, false
	}
	changed, err := s.writeTargets(ctx, p.stored, desired)
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
	peers, err := s.peers(ctx, p)
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

// finish records the verdict on the binding and returns when the binding is retried.
func (s *scheduler) finish(ctx context.Context, p pass, v verdict) reconcile.Result {
	if v.retry == retryAfterConflict {
		return reconcile.Result{RequeueAfter: conflictRetryDelay}
	}
	if apierrors.IsNotFound(v.err) {
		s.stopTracking(p.request)
		return reconcile.Result{}
	}
	v = v.withUnknownClusters(p.stored, p.snapshot.find).withFailedEstimators(p.stored)
	if err := s.writeStatus(ctx, p, v); err != nil {
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: conflictRetryDelay}
		}
		v.err, v.message, v.retry = err, err.Error(), retryWithBackoff
	}
	s.recordFailureEvents(p, v)
	if p.decision.Action == placement.ActionSchedule {
		s.metrics.recordAttempt(p.decision.Type, v.err, s.now().Sub(p.started))
	}
	return s.scheduleRetry(ctx, p, v)
}

// scheduleRetry records the failure for the backoff and returns when the binding is retried.
func (s *scheduler) scheduleRetry(ctx context.Context, p pass, v verdict) reconcile.Result {
	if v.retry == retryNever {
		s.backoff.reset(p.request)
		return reconcile.Result{}
	}
	delay := s.backoff.recordFailure(p.request, v.retry)
	if v.retry == retryWhenCapacity && s.clusters.snapshot().capacityRevision != p.snapshot.capacityRevision {
		// The binding is retried soon, because the capacity of clusters grew after this pass
		// started, and no other event will report that growth.
		delay = min(delay, s.options.BaseDelay)
	}
	s.metrics.countEnqueued(causeFailure)
	klog.FromContext(ctx).V(2).Info("Will be tried again", "cause", v.err, "after", delay)
	return reconcile.Result{RequeueAfter: delay}
}
