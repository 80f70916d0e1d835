package placement

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Peers are the targets of the other ResourceBindings of the namespace that share
// a group with this one, one set of cluster names a binding. Peers without
// targets say nothing and may be left out.
type Peers struct {
	// Affinity are the members of spec.workloadAffinityGroups.affinityGroup.
	Affinity []sets.Set[string]
	// AntiAffinity are the members of the antiAffinityGroup.
	AntiAffinity []sets.Set[string]
}

// neighbours are the clusters that affinity allows and anti-affinity forbids.
type neighbours struct {
	// allowed is nil if everything is: the first of a group goes anywhere.
	allowed   sets.Set[string]
	forbidden sets.Set[string]
}

func neighboursOf(peers Peers) neighbours {
	n := neighbours{forbidden: sets.New[string]()}
	for _, targets := range peers.Affinity {
		switch {
		case targets.Len() == 0:
		case n.allowed == nil:
			n.allowed = targets
		default:
			n.allowed = n.allowed.Intersection(targets)
		}
	}
	for _, targets := range peers.AntiAffinity {
		n.forbidden.Insert(targets.UnsortedList()...)
	}
	return n
}

// rejectStranger wants the cluster to run every other member of the group.
func rejectStranger(t *task, cluster *clusterv1alpha1.Cluster) reason {
	groups := t.spec.WorkloadAffinityGroups
	if groups == nil || groups.AffinityGroup == "" || t.targets(cluster.Name) ||
		t.neighbours.allowed == nil || t.neighbours.allowed.Has(cluster.Name) {
		return noReason
	}
	return uniform(fmt.Sprintf("not every workload of affinity group %q is there", groups.AffinityGroup))
}

// rejectRival wants the cluster to run no other member of the group.
func rejectRival(t *task, cluster *clusterv1alpha1.Cluster) reason {
	groups := t.spec.WorkloadAffinityGroups
	if groups == nil || groups.AntiAffinityGroup == "" || t.targets(cluster.Name) ||
		!t.neighbours.forbidden.Has(cluster.Name) {
		return noReason
	}
	return uniform(fmt.Sprintf("another workload of anti-affinity group %q is there", groups.AntiAffinityGroup))
}
