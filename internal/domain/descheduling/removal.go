package descheduling

import (
	"fmt"
	"strings"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Removal is the number of replicas that a target cluster loses. The number is at least 1.
type Removal struct {
	Cluster  string
	Replicas int32
}

// String returns the cluster and its removed replicas in the form CLUSTER:REPLICAS.
func (r Removal) String() string { return fmt.Sprintf("%s:%d", r.Cluster, r.Replicas) }

// Removals returns the replicas that the candidates lose, in the order of the candidates.
// unschedulable contains the number of unschedulable replicas by cluster. A cluster without a number
// loses no replicas.
//
// A number that is greater than the assigned replicas removes nothing, because the estimator counted
// Pods of another state of the workload.
func Removals(candidates []Candidate, unschedulable map[string]int32) []Removal {
	var removals []Removal
	for _, candidate := range candidates {
		surplus := unschedulable[candidate.Cluster]
		if surplus < 1 || surplus > candidate.Assigned {
			continue
		}
		kept := max(int64(candidate.Assigned-surplus), candidate.Ready)
		if removed := int64(candidate.Assigned) - kept; removed > 0 {
			removals = append(removals, Removal{Cluster: candidate.Cluster, Replicas: int32(removed)})
		}
	}
	return removals
}

// Lower returns a copy of the targets without the removed replicas. A target that loses all its
// replicas stays in the list, because only the scheduler removes targets.
func Lower(targets []workv1alpha2.TargetCluster, removals []Removal) []workv1alpha2.TargetCluster {
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

// Message describes removals for users. Tools read this text, so its form is fixed.
func Message(removals []Removal) string {
	text, total := &strings.Builder{}, int64(0)
	text.WriteString("Binding has been descheduled")
	for _, removal := range removals {
		fmt.Fprintf(text, ", %d replica(s) in cluster(%s)", removal.Replicas, removal.Cluster)
		total += int64(removal.Replicas)
	}
	fmt.Fprintf(text, ", %d total descheduled replica(s)", total)
	return text.String()
}
