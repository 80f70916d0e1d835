package scheduler

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/loop"
)

// isInWorkloadGroup reports whether the binding belongs to a workload affinity group, so that its
// targets depend on other bindings' targets.
func (s *scheduler) isInWorkloadGroup(bound binding.Object) bool {
	return s.options.Features.WorkloadAffinity && len(placement.WorkloadGroupKeys(bound)) > 0
}

// listPeers returns the targets of the other bindings in the binding's workload affinity groups, sorted
// by binding name.
func (s *scheduler) listPeers(ctx context.Context, p pass) (placement.Peers, error) {
	if !s.isInWorkloadGroup(p.stored) {
		return placement.Peers{}, nil
	}
	return placement.PeersOf(p.stored, func(key string) ([]binding.Object, error) {
		members, err := loop.ListBindings(ctx, s.karmada, true,
			client.InNamespace(p.stored.GetNamespace()), bindingsByWorkloadGroup.Matching(key))
		if err != nil {
			return nil, fmt.Errorf("listing the members of group %q: %w", key, err)
		}
		for i, member := range members {
			// The cache may not show the last write of this scheduler yet.
			members[i] = loop.Latest(s.ownWrites, requestOf(member), member)
			if reserved, ok := s.reservedTargets.Load(requestOf(member)); ok {
				members[i] = reserved.(binding.Object)
			}
		}
		slices.SortFunc(members, func(a, b binding.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
		return members, nil
	})
}

// reserve reserves the desired binding's targets before they are written. It returns false and
// reserves nothing if the peers have changed since the targets were selected, or if another binding
// has reserved the same resources.
func (s *scheduler) reserve(ctx context.Context, p pass, peers placement.Peers, desired binding.Object, estimatedAt *uint64) bool {
	if !s.isInWorkloadGroup(p.stored) {
		return s.assumptions.reserve(p.request, p.stored, desired, estimatedAt, s.now())
	}
	s.workloadGroupMu.Lock()
	defer s.workloadGroupMu.Unlock()
	current, err := s.listPeers(ctx, p)
	if err != nil || !reflect.DeepEqual(current, peers) || !s.assumptions.reserve(p.request, p.stored, desired, estimatedAt, s.now()) {
		return false
	}
	s.reservedTargets.Store(p.request, binding.Copy(desired)) // the write changes desired
	return true
}
