package rebalance

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/placement"
)

// Preview returns where a fresh scheduling would place the binding's template now. The capacity is that in the
// status of the clusters, so the scheduler may find less room with accurate estimators. The binding must have
// a placement.
func Preview(bound binding.Object, clusters []*clusterv1alpha1.Cluster, now time.Time) placement.Explanation {
	requested := binding.ShallowCopy(bound)
	requested.BindingSpec().RescheduleTriggeredAt = new(metav1.NewTime(now))
	requested.BindingStatus().LastScheduledTime = &metav1.Time{}
	input := placement.NewInput(requested, now)
	input.Clusters = clusters
	input.EstimateReplicas = func(clusters []*clusterv1alpha1.Cluster) []int32 {
		demand := placement.DemandOf(input.Spec, placement.Features{})
		available, counts := demand.Counter(false), make([]int32, len(clusters))
		for i, cluster := range clusters {
			counts[i] = available(cluster)
		}
		return counts
	}
	return placement.Explain(input)
}

// CheckForCluster reports whether a fresh scheduling would place the binding's template in the named cluster,
// in which it has nothing now. reason describes why not.
func CheckForCluster(
	bound binding.Object, name string, clusters []*clusterv1alpha1.Cluster, now time.Time,
) (isSelected bool, reason string) {
	spec := bound.BindingSpec()
	switch {
	case failover.HasTarget(spec, name):
		return false, "already there"
	case spec.Placement == nil:
		return false, "follows the workloads that need it"
	case !placement.IsSchedulable(bound, spec):
		return false, "its scheduling is suspended, or no policy claims it"
	}
	explanation := Preview(bound, clusters, now)
	if slices.ContainsFunc(explanation.Result.Clusters, func(target workv1alpha2.TargetCluster) bool { return target.Name == name }) {
		return true, ""
	}
	for _, exclusion := range explanation.Exclusions {
		if exclusion.Cluster == name {
			return false, exclusion.Reason
		}
	}
	return false, "the scheduler would choose other clusters"
}

// Progress is how far the scheduler has processed a reschedule request.
type Progress string

// Values of Progress.
const (
	// Waiting means that the scheduler has not processed the request.
	Waiting Progress = "Waiting"
	// Placed means that the scheduler placed the template afresh.
	Placed Progress = "Placed"
	// NotPlaced means that the scheduler found no placement and keeps trying.
	NotPlaced Progress = "NotPlaced"
	// Skipped means that the scheduler does not place the template.
	Skipped Progress = "Skipped"
)

// ProgressOf returns the progress of a reschedule request with the given trigger time. The message explains
// NotPlaced and Skipped, and is empty otherwise.
func ProgressOf(bound binding.Object, requested time.Time) (progress Progress, message string) {
	spec, status := bound.BindingSpec(), bound.BindingStatus()
	if NeedsTrigger(bound, requested) {
		return Waiting, ""
	}
	if spec.Placement == nil || !placement.IsSchedulable(bound, spec) {
		_, problem := Result(Workload{APIVersion: spec.Resource.APIVersion}, bound)
		return Skipped, problem
	}
	scheduled := conditions.Get(status.Conditions, workv1alpha2.Scheduled)
	switch {
	case scheduled != nil && scheduled.Status == metav1.ConditionFalse && scheduled.ObservedGeneration >= bound.GetGeneration():
		return NotPlaced, scheduled.Message
	case binding.IsScheduled(bound):
		return Placed, ""
	default:
		return Waiting, ""
	}
}

// HaveSameTargets reports whether two states of a binding have the same clusters with the same replicas.
func HaveSameTargets(before, after binding.Object) bool {
	replicas := map[string]int32{}
	for _, target := range before.BindingSpec().Clusters {
		replicas[target.Name] = target.Replicas
	}
	for _, target := range after.BindingSpec().Clusters {
		if of, isTarget := replicas[target.Name]; !isTarget || of != target.Replicas {
			return false
		}
	}
	return len(before.BindingSpec().Clusters) == len(after.BindingSpec().Clusters)
}
