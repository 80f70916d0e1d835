package scheduler

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

// maxPlacedBindings is the maximum number of placed bindings that are remembered until they are
// created. The others are scheduled again after their creation.
const maxPlacedBindings = 10_000

// placeNew sets the clusters of a binding that is about to be created, if each cluster gets the same
// copy. It leaves the binding unchanged, to be scheduled after its creation, if the result would depend
// on more than the properties of the clusters (capacity, other bindings, affinity groups) or would have
// to be explained in the status.
func (s *scheduler) placeNew(ctx context.Context, created binding.Object) {
	if !s.handles(created) || s.options.OvercommitProtection || s.isInWorkloadGroup(created) {
		return
	}
	p := pass{request: requestOf(created), stored: created, snapshot: s.clusters.snapshot(), started: s.now()}
	decision, err := decide(created, p.snapshot.find, s.options.Features)
	spec := created.BindingSpec()
	if err != nil || decision.Action != placement.ActionSchedule ||
		!placement.IsSameEverywhere(spec) || len(spec.Placement.ClusterAffinities) > 0 {
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
	spec.Clusters = desired.BindingSpec().Clusters
	created.SetAnnotations(desired.GetAnnotations())
	binding.RecordScheduled(created, p.started)
	s.placed.Add(p.request, placedBinding{snapshot: p.snapshot, decision: decision, at: p.started, duration: s.now().Sub(p.started)})
}

// placedBinding is a binding that placeNew has placed.
type placedBinding struct {
	snapshot *snapshot
	decision placement.Decision
	at       time.Time
	duration time.Duration
}

// confirmPlacement reports the success of placeNew for a binding that has been created. It returns
// false if the binding must be scheduled, because placeNew did not place it, the API server stored
// another spec, or a cluster has changed since then.
func (s *scheduler) confirmPlacement(created binding.Object) bool {
	r := requestOf(created)
	stored, _ := s.placed.Get(r)
	placed, isPlaced := stored.(placedBinding)
	if !isPlaced {
		return false
	}
	s.placed.Remove(r)
	if !binding.IsScheduled(created) {
		return false
	}
	s.metrics.recordAttempt(placed.decision.Type, nil, placed.duration)
	s.recordPlacementEvent(created, nil)
	klog.Background().Info("Scheduled", "binding", r, "why", placed.decision.Reason,
		"clusters", placement.DescribeTargets(created.BindingSpec()), "outcome", workv1alpha2.BindingReasonSuccess)
	p := pass{request: r, stored: created, snapshot: s.clusters.snapshot(), started: placed.at}
	out := newOutcome(nil)
	out.isPlaced, out.isProcessed = true, true
	return placed.snapshot == p.snapshot && s.deferStatus(p, out)
}
