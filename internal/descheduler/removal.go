package descheduler

import (
	"fmt"
	"strings"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// removal is the number of replicas, at least 1, that a target cluster loses.
type removal struct {
	Cluster  string
	Replicas int32
}

// String formats the removal as CLUSTER:REPLICAS.
func (r removal) String() string { return fmt.Sprintf("%s:%d", r.Cluster, r.Replicas) }

// removalsFor returns how many replicas each candidate loses, in the order of the candidates. The map
// unschedulable holds the number of unschedulable replicas by cluster. A cluster without an entry
// loses no replicas. Nor does a cluster with more unschedulable than assigned replicas, because its
// estimator counted Pods of an older replica count.
func removalsFor(candidates []candidate, unschedulable map[string]int32) []removal {
	var removals []removal
	for _, candidate := range candidates {
		surplus := unschedulable[candidate.Cluster]
		if surplus < 1 || surplus > candidate.Assigned {
			continue
		}
		kept := max(int64(candidate.Assigned-surplus), candidate.Ready)
		if removed := int64(candidate.Assigned) - kept; removed > 0 {
			removals = append(removals, removal{Cluster: candidate.Cluster, Replicas: int32(removed)})
		}
	}
	return removals
}

// lowerTargets returns a copy of the targets without the removed replicas. A target that loses all
// replicas stays in the list with 0 replicas, because only the scheduler removes targets.
func lowerTargets(targets []workv1alpha2.TargetCluster, removals []removal) []workv1alpha2.TargetCluster {
	lowered := make([]workv1alpha2.TargetCluster, len(targets))
	isLowered := make(map[string]bool, len(removals))
	for i := range targets {
		lowered[i] = *targets[i].DeepCopy()
		for _, removal := range removals {
			if removal.Cluster == lowered[i].Name && !isLowered[removal.Cluster] {
				lowered[i].Replicas = max(lowered[i].Replicas-removal.Replicas, 0)
				isLowered[removal.Cluster] = true
			}
		}
	}
	return lowered
}

// removalMessage describes the removals for users. Tools parse this text, so its format is fixed.
func removalMessage(removals []removal) string {
	text, total := &strings.Builder{}, int64(0)
	text.WriteString("Binding has been descheduled")
	for _, removal := range removals {
		fmt.Fprintf(text, ", %d replica(s) in cluster(%s)", removal.Replicas, removal.Cluster)
		total += int64(removal.Replicas)
	}
	fmt.Fprintf(text, ", %d total descheduled replica(s)", total)
	return text.String()
}
