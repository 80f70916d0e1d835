package scheduler

import (
	"context"

	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

// maxPlacedBindings is the maximum number of placed bindings that are remembered until they are
// created. The others are scheduled again after their creation.
const maxPlacedBindings = 10_000

// placeNew sets the clusters of a binding that is about to be created. It leaves the binding
// unchanged, to be scheduled after its creation, if the result would depend on more than the
// properties of the clusters (capacity, other bindings, affinity groups) or would have to be
// explained in the status.
func (s *scheduler) placeNew(ctx context.Context, created binding.Object) {
	if !s.handles(created) || s.options.OvercommitProtection || s.isInWorkloadGroup(created) {
		return
	}
	p := pass{request: requestOf(created), stored: created, snapshot: s.clusters.snapshot(), started: s.now()}
	decision, err := decide(created, p.snapshot.find, s.options.Features)
	if err != nil || decision.Action != placement.ActionSchedule || len(created.BindingSpec().Placement.ClusterAffinities) > 0 {
		return
	}
	input, err := s.placementInput(ctx, p, nil)
	if err != nil {
		return
	}
	dependsOnCapacity := false
	input.EstimateReplicas = func(clusters []*clusterv1alpha1.Cluster) []int32 {
		dependsOnCapacity = true
		return make([]int32, len(clusters))
	}
	result, err := placement.Schedule(input)
	desired, out := desiredBinding(p, result, err)
	out = out.withUnknownClusters(created, p.snapshot.find)
	if dependsOnCapacity || out.err != nil || out.message != binding.MessageScheduled {
		return
	}
	created.BindingSpec().Clusters = desired.BindingSpec().Clusters
	created.SetAnnotations(desired.GetAnnotations())
	setAnnotation(created, workv1alpha2.ScheduledStateAnnotation, binding.ScheduledState(created))
	s.placed.Add(p.request, p.snapshot)
	s.metrics.recordAttempt(decision.Type, nil, s.now().Sub(p.started))
	klog.FromContext(ctx).Info("Scheduled", "binding", p.request, "why", decision.Reason,
		"clusters", placement.DescribeTargets(created.BindingSpec()), "outcome", out.reason)
}

// confirmPlacement reports the success of placeNew for a binding that has been created. It returns
// false if the binding must be scheduled, because placeNew did not place it, or a cluster or the
// binding has changed since then.
func (s *scheduler) confirmPlacement(created binding.Object) bool {
	r := requestOf(created)
	placedFor, isPlaced := s.placed.Get(r)
	if !isPlaced {
		return false
	}
	s.placed.Remove(r)
	s.recordPlacementEvent(created, nil)
	p := pass{request: r, stored: created, snapshot: s.clusters.snapshot(), started: s.now()}
	return placedFor == p.snapshot && s.deferStatus(p, unchangedOutcome(created))
}
