package placement

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// Owned reports whether the scheduler of that name handles the binding: the
// binding names it (no name counts as policyv1alpha1.DefaultSchedulerName), its
// scheduling is not suspended, and a policy or another manager made it. Bindings
// that only follow another one carry no such label and are never scheduled.
func Owned(meta metav1.Object, spec *workv1alpha2.ResourceBindingSpec, schedulerName string) bool {
	return SchedulerOf(spec) == schedulerName && Schedulable(meta, spec)
}

// Schedulable reports whether some scheduler has to handle the binding: its
// scheduling is not suspended, and a policy or another manager made it.
func Schedulable(meta metav1.Object, spec *workv1alpha2.ResourceBindingSpec) bool {
	return !Suspended(spec) && managed(meta.GetLabels())
}

// SchedulerOf is the name of the scheduler that the binding asks for.
func SchedulerOf(spec *workv1alpha2.ResourceBindingSpec) string {
	if spec.SchedulerName == "" {
		return policyv1alpha1.DefaultSchedulerName
	}
	return spec.SchedulerName
}

// Unreported reports whether no scheduler has said anything about that generation of
// a binding. A condition without a generation is that of a scheduler which does not
// record any, and counts as a report.
func Unreported(generation int64, status *workv1alpha2.ResourceBindingStatus) bool {
	told := conditions.Get(status.Conditions, workv1alpha2.Scheduled)
	if told == nil {
		return true
	}
	return told.ObservedGeneration != 0 && told.ObservedGeneration < generation && status.SchedulerObservedGeneration < generation
}

// Suspended reports whether the user holds back the scheduling of the binding.
func Suspended(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Suspension != nil && spec.Suspension.Scheduling != nil && *spec.Suspension.Scheduling
}

func managed(labels map[string]string) bool {
	return labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" ||
		labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != "" ||
		labels[workv1alpha2.BindingManagedByLabel] != ""
}

// AffectedBy reports whether a change of the cluster may change where an owned
// binding goes: it is there, or its affinity selects the cluster. A caller asks about
// the old and the new state of the cluster.
//
// With affinity groups only the group in use counts, along with its overflow
// groups, and after a failure those behind it; a binding whose latest generation
// is not scheduled yet is affected anyway, since it may be about to use another
// group.
func AffectedBy(
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
	failed := conditions.Is(status.Conditions, workv1alpha2.Scheduled, metav1.ConditionFalse)
	for _, group := range tried(placement.ClusterAffinities, status.SchedulerObservedAffinityName, failed) {
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

// tried are the groups on which the present result depends: the one in use and,
// after a failure, those behind it, of which the next try may take one.
func tried(groups []policyv1alpha1.ClusterAffinityTerm, observing string, failed bool) []policyv1alpha1.ClusterAffinityTerm {
	if len(groups) == 0 {
		return nil
	}
	first := groupIndex(groups, observing)
	if failed {
		return groups[first:]
	}
	return groups[first : first+1]
}

// groupIndex finds the affinity group of that name; 0 if there is none.
func groupIndex(groups []policyv1alpha1.ClusterAffinityTerm, name string) int {
	for i := range groups {
		if groups[i].AffinityName == name {
			return i
		}
	}
	return 0
}
