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

// isInWorkloadGroup reports whether the targets of the binding depend on the targets of other
// bindings, because the binding belongs to a workload affinity group.
func (s *scheduler) isInWorkloadGroup(bound binding.Object) bool {
	return s.options.Features.WorkloadAffinity && len(placement.WorkloadGroupKeys(bound)) > 0
}

// peers returns the targets of the other bindings in the workload affinity groups of this binding,
// in the order of the names of the bindings.
func (s *scheduler) peers(ctx context.Context, p pass) (placement.Peers, error) {
	if !s.isInWorkloadGroup(p.stored) {
		return placement.Peers{}, nil
	}
	return placement.PeersOf(p.stored, func(key string) ([]binding.Object, error) {
		members, err := loop.ListBindings(ctx, s.karmada, true, client.InNamespace(p.stored.GetNamespace()), bindingsByWorkloadGroup.Matching(key))
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

// reserve records the targets of a binding before their write. It returns false, and records nothing,
// if the peers changed after the targets were chosen, or if another binding reserved the same
// resources.
func (s *scheduler) reserve(ctx context.Context, p pass, peers placement.Peers, desired binding.Object, estimatedAt *uint64) bool {
	if !s.isInWorkloadGroup(p.stored) {
		return s.assumptions.reserve(p.request, p.stored, desired, estimatedAt, s.now())
	}
	s.workloadGroupMu.Lock()
	defer s.workloadGroupMu.Unlock()
	current, err := s.peers(ctx, p)
	if err != nil || !reflect.DeepEqual(current, peers) || !s.assumptions.reserve(p.request, p.stored, desired, estimatedAt, s.now()) {
		return false
	}
	s.reservedTargets.Store(p.request, binding.Copy(desired)) // the write changes desired
	return true
}
