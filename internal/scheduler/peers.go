package scheduler

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

// workloadGroupIndex indexes ResourceBindings by their workload affinity groups.
const workloadGroupIndex = "workload-affinity-groups"

const (
	affinityKeyPrefix     = "affinity/"
	antiAffinityKeyPrefix = "anti-affinity/"
)

// indexWorkloadGroups adds the index of the workload affinity groups, if the feature is enabled.
func (s *scheduler) indexWorkloadGroups(indexer client.FieldIndexer) error {
	if !s.options.Features.WorkloadAffinity {
		return nil
	}
	// The index has the lifetime of the cache.
	err := indexer.IndexField(context.Background(), &workv1alpha2.ResourceBinding{}, workloadGroupIndex, func(obj client.Object) []string {
		bound, ok := obj.(*workv1alpha2.ResourceBinding)
		if !ok {
			return nil
		}
		return workloadGroupKeys(bound)
	})
	if err != nil {
		return fmt.Errorf("indexing bindings by workload affinity groups: %w", err)
	}
	return nil
}

// workloadGroupKeys returns the index keys of the groups of a binding.
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

// isInWorkloadGroup reports whether the targets of the binding depend on those of other
// bindings.
func (s *scheduler) isInWorkloadGroup(bound binding.Object) bool {
	return s.options.Features.WorkloadAffinity && binding.IsNamespaced(bound) && len(workloadGroupKeys(bound)) > 0
}

// peers returns the targets of the other members of the groups of the binding.
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

// groupTargets returns the targets of the other members of one group.
func (s *scheduler) groupTargets(ctx context.Context, bound binding.Object, kind, group string) ([]sets.Set[string], error) {
	if group == "" {
		return nil, nil
	}
	list := &workv1alpha2.ResourceBindingList{}
	if err := s.karmada.List(ctx, list, client.InNamespace(bound.GetNamespace()),
		client.MatchingFields{workloadGroupIndex: kind + group}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the members of group %q: %w", group, err)
	}
	var members []sets.Set[string]
	for i := range list.Items {
		member := &list.Items[i]
		if member.Name == bound.GetName() {
			continue
		}
		targets := sets.New[string]()
		// A result that was just written counts, although the cache does not show it yet.
		for _, target := range s.assignments.newest(requestOf(member), member).BindingSpec().Clusters {
			targets.Insert(target.Name)
		}
		if targets.Len() > 0 {
			members = append(members, targets)
		}
	}
	return members, nil
}
