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

// groupIndex finds ResourceBindings by the workload groups they are in.
const groupIndex = "workload-affinity-groups"

const (
	affinity     = "affinity/"
	antiAffinity = "anti-affinity/"
)

// indexGroups makes members of a group findable, if groups count at all.
func (s *scheduler) indexGroups(indexer client.FieldIndexer) error {
	if !s.options.Features.WorkloadAffinity {
		return nil
	}
	// The index is part of the cache and lives as long.
	err := indexer.IndexField(context.Background(), &workv1alpha2.ResourceBinding{}, groupIndex, func(obj client.Object) []string {
		of, ok := obj.(*workv1alpha2.ResourceBinding)
		if !ok {
			return nil
		}
		return groupsOf(of)
	})
	if err != nil {
		return fmt.Errorf("indexing bindings by workload affinity groups: %w", err)
	}
	return nil
}

// groupsOf are the groups of a binding as the index knows them.
func groupsOf(of binding.Object) []string {
	groups := of.BindingSpec().WorkloadAffinityGroups
	if groups == nil {
		return nil
	}
	var keys []string
	if groups.AffinityGroup != "" {
		keys = append(keys, affinity+groups.AffinityGroup)
	}
	if groups.AntiAffinityGroup != "" {
		keys = append(keys, antiAffinity+groups.AntiAffinityGroup)
	}
	return keys
}

// inGroup tells whether the place of the binding depends on that of others.
func (s *scheduler) inGroup(of binding.Object) bool {
	return s.options.Features.WorkloadAffinity && binding.Namespaced(of) && len(groupsOf(of)) > 0
}

// peers are the targets of the other members of the binding's groups.
func (s *scheduler) peers(ctx context.Context, p pass) (placement.Peers, error) {
	groups := p.stored.BindingSpec().WorkloadAffinityGroups
	if !s.inGroup(p.stored) {
		return placement.Peers{}, nil
	}
	friends, err := s.members(ctx, p.stored, affinity, groups.AffinityGroup)
	if err != nil {
		return placement.Peers{}, err
	}
	rivals, err := s.members(ctx, p.stored, antiAffinity, groups.AntiAffinityGroup)
	if err != nil {
		return placement.Peers{}, err
	}
	return placement.Peers{Affinity: friends, AntiAffinity: rivals}, nil
}

func (s *scheduler) members(ctx context.Context, of binding.Object, kind, group string) ([]sets.Set[string], error) {
	if group == "" {
		return nil, nil
	}
	list := &workv1alpha2.ResourceBindingList{}
	if err := s.karmada.List(ctx, list, client.InNamespace(of.GetNamespace()),
		client.MatchingFields{groupIndex: kind + group}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the members of group %q: %w", group, err)
	}
	var members []sets.Set[string]
	for i := range list.Items {
		member := &list.Items[i]
		if member.Name == of.GetName() {
			continue
		}
		targets := sets.New[string]()
		// A result that was just written counts although it is not observed yet.
		for _, target := range s.recent.latest(requestOf(member), member).BindingSpec().Clusters {
			targets.Insert(target.Name)
		}
		if targets.Len() > 0 {
			members = append(members, targets)
		}
	}
	return members, nil
}
