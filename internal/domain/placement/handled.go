package placement

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// IsHandledBy reports whether the scheduler with the given name handles the binding. The binding
// must name the scheduler (an empty name means policyv1alpha1.DefaultSchedulerName), its
// scheduling must not be suspended, and it must be created by a policy or another manager.
// Attached bindings have no such label and are never scheduled.
func IsHandledBy(meta metav1.Object, spec *workv1alpha2.ResourceBindingSpec, schedulerName string) bool {
	return SchedulerName(spec) == schedulerName && IsSchedulable(meta, spec)
}

// IsSchedulable reports whether some scheduler handles the binding: its scheduling is not
// suspended, and a policy or another manager created it.
func IsSchedulable(meta metav1.Object, spec *workv1alpha2.ResourceBindingSpec) bool {
	return !IsSchedulingSuspended(spec) && isManaged(meta.GetLabels())
}

// SchedulerName returns the name of the scheduler that the binding selects.
func SchedulerName(spec *workv1alpha2.ResourceBindingSpec) string {
	if spec.SchedulerName == "" {
		return policyv1alpha1.DefaultSchedulerName
	}
	return spec.SchedulerName
}

// IsSchedulingUnreported reports whether the Scheduled condition is missing or belongs to an
// older generation of the binding. A condition without a generation was written by a scheduler
// that does not record one, and counts as a report.
func IsSchedulingUnreported(generation int64, status *workv1alpha2.ResourceBindingStatus) bool {
	condition := conditions.Get(status.Conditions, workv1alpha2.Scheduled)
	if condition == nil {
		return true
	}
	return condition.ObservedGeneration != 0 && condition.ObservedGeneration < generation && status.SchedulerObservedGeneration < generation
}

// IsSchedulingSuspended reports whether the scheduling of the binding is suspended.
func IsSchedulingSuspended(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Suspension != nil && spec.Suspension.Scheduling != nil && *spec.Suspension.Scheduling
}

func isManaged(labels map[string]string) bool {
	return labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" ||
		labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != "" ||
		labels[workv1alpha2.BindingManagedByLabel] != ""
}

// IsAffectedByCluster reports whether a change of the cluster may change the targets of a
// binding that this scheduler handles. That is the case if the cluster is a target or if the
// affinity selects it. Callers check both the old and the new state of the cluster.
//
// With affinity groups only the group in use with its overflow groups counts and, after a
// failure, the groups behind it. A binding whose latest generation is not scheduled yet is
// always affected, because its next scheduling may use another group.
func IsAffectedByCluster(
	cluster *clusterv1alpha1.Cluster,
	meta metav1.Object,
	spec *workv1alpha2.ResourceBindingSpec,
	status *workv1alpha2.ResourceBindingStatus,
) bool {
	placement := spec.Placement
	switch {
	case slices.ContainsFunc(spec.Clusters, func(target workv1alpha2.TargetCluster) bool { return target.Name == cluster.Name }):
		return true
	case placement == nil:
		return false
	}
	if len(placement.ClusterAffinities) == 0 {
		return Matches(cluster, placement.ClusterAffinity)
	}
	if status.SchedulerObservedGeneration != meta.GetGeneration() {
		return true
	}
	failed := conditions.HasStatus(status.Conditions, workv1alpha2.Scheduled, metav1.ConditionFalse)
	for _, group := range relevantGroups(placement.ClusterAffinities, status.SchedulerObservedAffinityName, failed) {
		if Matches(cluster, &group.ClusterAffinity) {
			return true
		}
		for i := range group.OverflowAffinities {
			if Matches(cluster, &group.OverflowAffinities[i].ClusterAffinity) {
				return true
			}
		}
	}
	return false
}

// relevantGroups returns the groups on which the present result depends: the group in use and,
// after a failure, the groups behind it, which the next attempt may use.
func relevantGroups(groups []policyv1alpha1.ClusterAffinityTerm, activeGroup string, failed bool) []policyv1alpha1.ClusterAffinityTerm {
	if len(groups) == 0 {
		return nil
	}
	first := groupIndex(groups, activeGroup)
	if failed {
		return groups[first:]
	}
	return groups[first : first+1]
}

// groupIndex returns the index of the affinity group with that name, or 0 if there is none.
func groupIndex(groups []policyv1alpha1.ClusterAffinityTerm, name string) int {
	for i := range groups {
		if groups[i].AffinityName == name {
			return i
		}
	}
	return 0
}
