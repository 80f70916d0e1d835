package scheduler

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/lookup"
)

// Prefixes of the index keys of bindingsByWorkloadGroup.
const (
	affinityKeyPrefix     = "affinity/"
	antiAffinityKeyPrefix = "anti-affinity/"
)

// workloadGroupKeys returns the index keys of the workload affinity groups of a binding.
func workloadGroupKeys(bound binding.Object) []string {
	groups := bound.BindingSpec().WorkloadAffinityGroups
	if groups == nil {
		return nil
	}
	var keys []string
	if groups.AffinityGroup != "" {
		keys = append(keys, affinityKeyPrefix+groups.AffinityGroup)
	}
	if groups.AntiAffinityGroup != "" {
		keys = append(keys, antiAffinityKeyPrefix+groups.AntiAffinityGroup)
	}
	return keys
}

// isInWorkloadGroup reports whether the targets of the binding depend on the targets of other
// bindings, because the binding belongs to a workload affinity group.
func (s *scheduler) isInWorkloadGroup(bound binding.Object) bool {
	return s.options.Features.WorkloadAffinity && binding.IsNamespaced(bound) && len(workloadGroupKeys(bound)) > 0
}

// peers returns the targets of the other bindings in the workload affinity groups of this binding.
func (s *scheduler) peers(ctx context.Context, p pass) (placement.Peers, error) {
	groups := p.stored.BindingSpec().WorkloadAffinityGroups
	if !s.isInWorkloadGroup(p.stored) {
		return placement.Peers{}, nil
	}
	affinityTargets, err := s.groupTargets(ctx, p.stored, affinityKeyPrefix, groups.AffinityGroup)
	if err != nil {
		return placement.Peers{}, err
	}
	antiAffinityTargets, err := s.groupTargets(ctx, p.stored, antiAffinityKeyPrefix, groups.AntiAffinityGroup)
	if err != nil {
		return placement.Peers{}, err
	}
	return placement.Peers{Affinity: affinityTargets, AntiAffinity: antiAffinityTargets}, nil
}

// groupTargets returns the targets of the other bindings in one workload affinity group.
func (s *scheduler) groupTargets(ctx context.Context, bound binding.Object, kind, group string) ([]sets.Set[string], error) {
	if group == "" {
		return nil, nil
	}
	members, err := lookup.Bindings(ctx, s.karmada, true, client.InNamespace(bound.GetNamespace()), bindingsByWorkloadGroup.Matching(kind+group))
	if err != nil {
		return nil, fmt.Errorf("listing the members of group %q: %w", group, err)
	}
	var targetsOfMembers []sets.Set[string]
	for _, member := range members {
		if member.GetName() == bound.GetName() {
			continue
		}
		targets := sets.New[string]()
		// The targets come from the last write of this scheduler, because the cache may not show
		// that write yet.
		for _, target := range loop.Latest(s.ownWrites, requestOf(member), member).BindingSpec().Clusters {
			targets.Insert(target.Name)
		}
		if targets.Len() > 0 {
			targetsOfMembers = append(targetsOfMembers, targets)
		}
	}
	return targetsOfMembers, nil
}
