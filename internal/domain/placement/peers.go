package placement

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
)

// Peers holds the targets of the other ResourceBindings in the namespace that are in a workload
// affinity group of this binding. Each set holds the cluster names of one ResourceBinding.
// ResourceBindings without targets have no effect and may be omitted.
type Peers struct {
	// Affinity holds the targets of the members of spec.workloadAffinityGroups.affinityGroup.
	Affinity []sets.Set[string]
	// AntiAffinity holds the targets of the members of
	// spec.workloadAffinityGroups.antiAffinityGroup.
	AntiAffinity []sets.Set[string]
}

// Prefixes of the keys of workload affinity groups.
const (
	affinityKeyPrefix     = "affinity/"
	antiAffinityKeyPrefix = "anti-affinity/"
)

// WorkloadGroupKeys returns the keys of the workload affinity groups of a binding. An index stores
// the binding under these keys. Only ResourceBindings of the same namespace share a group.
func WorkloadGroupKeys(bound binding.Object) []string {
	groups := bound.BindingSpec().WorkloadAffinityGroups
	if groups == nil || !binding.IsNamespaced(bound) {
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

// PeersOf returns the peers of a binding. members returns the ResourceBindings of a group in the
// namespace of the binding by the key of the group, in any order, with or without the binding itself.
func PeersOf(bound binding.Object, members func(key string) ([]binding.Object, error)) (Peers, error) {
	var peers Peers
	groups := bound.BindingSpec().WorkloadAffinityGroups
	for _, key := range WorkloadGroupKeys(bound) {
		found, err := members(key)
		if err != nil {
			return Peers{}, err
		}
		if key == affinityKeyPrefix+groups.AffinityGroup {
			peers.Affinity = targetSets(bound.GetName(), found)
		} else {
			peers.AntiAffinity = targetSets(bound.GetName(), found)
		}
	}
	return peers, nil
}

// targetSets returns the targets of each of the bindings that has targets, without the named
// binding.
func targetSets(without string, bindings []binding.Object) []sets.Set[string] {
	var all []sets.Set[string]
	for _, each := range bindings {
		targets := sets.New[string]()
		for i := range each.BindingSpec().Clusters {
			targets.Insert(each.BindingSpec().Clusters[i].Name)
		}
		if each.GetName() != without && targets.Len() > 0 {
			all = append(all, targets)
		}
	}
	return all
}

// peerClusters holds the clusters that workload affinity requires and those that anti-affinity
// forbids.
type peerClusters struct {
	// required is nil if every cluster is allowed, because the first workload of a group may run in
	// any cluster.
	required  sets.Set[string]
	forbidden sets.Set[string]
}

func peerClustersOf(peers Peers) peerClusters {
	n := peerClusters{forbidden: sets.New[string]()}
	for _, targets := range peers.Affinity {
		switch {
		case targets.Len() == 0:
		case n.required == nil:
			n.required = targets
		default:
			n.required = n.required.Intersection(targets)
		}
	}
	for _, targets := range peers.AntiAffinity {
		n.forbidden.Insert(targets.UnsortedList()...)
	}
	return n
}

// rejectWorkloadAffinity rejects clusters that do not run every other member of the affinity group.
func rejectWorkloadAffinity(t *task, cluster *clusterv1alpha1.Cluster) reason {
	groups := t.spec.WorkloadAffinityGroups
	if groups == nil || groups.AffinityGroup == "" || t.isTarget(cluster.Name) ||
		t.peerClusters.required == nil || t.peerClusters.required.Has(cluster.Name) {
		return noReason
	}
	return newReason(fmt.Sprintf("not every workload of affinity group %q is there", groups.AffinityGroup))
}

// rejectWorkloadAntiAffinity rejects clusters that run another member of the anti-affinity group.
func rejectWorkloadAntiAffinity(t *task, cluster *clusterv1alpha1.Cluster) reason {
	groups := t.spec.WorkloadAffinityGroups
	if groups == nil || groups.AntiAffinityGroup == "" || t.isTarget(cluster.Name) ||
		!t.peerClusters.forbidden.Has(cluster.Name) {
		return noReason
	}
	return newReason(fmt.Sprintf("another workload of anti-affinity group %q is there", groups.AntiAffinityGroup))
}
