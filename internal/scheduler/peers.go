package scheduler

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/lookup"
)

// isInWorkloadGroup reports whether the targets of the binding depend on the targets of other
// bindings, because the binding belongs to a workload affinity group.
func (s *scheduler) isInWorkloadGroup(bound binding.Object) bool {
	return s.options.Features.WorkloadAffinity && len(placement.WorkloadGroupKeys(bound)) > 0
}

// peers returns the targets of the other bindings in the workload affinity groups of this binding.
func (s *scheduler) peers(ctx context.Context, p pass) (placement.Peers, error) {
	if !s.isInWorkloadGroup(p.stored) {
		return placement.Peers{}, nil
	}
	return placement.PeersOf(p.stored, func(key string) ([]binding.Object, error) {
		members, err := lookup.Bindings(ctx, s.karmada, true, client.InNamespace(p.stored.GetNamespace()), bindingsByWorkloadGroup.Matching(key))
		if err != nil {
			return nil, fmt.Errorf("listing the members of group %q: %w", key, err)
		}
		for i, member := range members {
			// The targets come from the last write of this scheduler, because the cache may not show
			// that write yet.
			members[i] = loop.Latest(s.ownWrites, requestOf(member), member)
		}
		return members, nil
	})
}
