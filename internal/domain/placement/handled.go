package placement

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/clusteraffinity"
	"karmada.io/karmada/internal/domain/conditions"
)

// IsHandledBy reports whether the scheduler with the given name handles the binding: the binding names
// this scheduler (see SchedulerName) and is schedulable (see IsSchedulable).
func IsHandledBy(meta metav1.Object, spec *workv1alpha2.ResourceBindingSpec, schedulerName string) bool {
	return SchedulerName(spec) == schedulerName && IsSchedulable(meta, spec)
}

// IsSchedulable reports whether any scheduler handles the binding: its scheduling is not suspended, and
// a label shows that a policy or another manager created it. Attached bindings do not have such a
// label, so they are never scheduled.
func IsSchedulable(meta metav1.Object, spec *workv1alpha2.ResourceBindingSpec) bool {
	return !IsSchedulingSuspended(spec) && isManaged(meta.GetLabels())
}

// SchedulerName returns the name of the scheduler that the binding selects. The default is
// policyv1alpha1.DefaultSchedulerName.
func SchedulerName(spec *workv1alpha2.ResourceBindingSpec) string {
	if spec.SchedulerName == "" {
		return policyv1alpha1.DefaultSchedulerName
	}
	return spec.SchedulerName
}

// IsSchedulingUnreported reports whether the Scheduled condition is missing or belongs to an older
// generation of the binding. A condition without a generation counts as a report, because some
// schedulers do not record the generation.
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

// IsAffectedByCluster reports whether a change of the cluster may change the binding's targets, because
// the cluster is a target or the affinity selects it. Callers check both the old and the new state of
// the cluster.
//
// With affinity groups, only the group in use and its overflow groups are considered, or all groups
// after a failure. A binding whose latest generation is not scheduled yet is always affected, because
// it may be placed in another group.
func IsAffectedByCluster(
	cluster *clusterv1alpha1.Cluster,
	meta metav1.Object,
	spec *workv1alpha2.ResourceBindingSpec,
	status *workv1alpha2.ResourceBindingStatus,
) bool {
	if slices.ContainsFunc(spec.Clusters, func(target workv1alpha2.TargetCluster) bool { return target.Name == cluster.Name }) {
		return true
	}
	affinities, dependsOnAll := affinitiesInUse(meta, spec, status)
	return dependsOnAll || slices.ContainsFunc(affinities, func(affinity *policyv1alpha1.ClusterAffinity) bool {
		return clusteraffinity.Matches(cluster, affinity)
	})
}

// BindingKeys returns the binding's keys in the index that finds the bindings that a changed cluster
// may affect. If IsAffectedByCluster returns true for a cluster, at least one of the keys is among the
// cluster's clusteraffinity.ClusterKeys. The reverse is not guaranteed.
func BindingKeys(meta metav1.Object, spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus) []string {
	var keys []string
	for i := range spec.Clusters {
		keys = append(keys, clusteraffinity.NameKey(spec.Clusters[i].Name))
	}
	affinities, dependsOnAll := affinitiesInUse(meta, spec, status)
	if dependsOnAll {
		return []string{clusteraffinity.AnyKey}
	}
	for _, affinity := range affinities {
		keys = append(keys, clusteraffinity.IndexKeys(affinity)...)
	}
	slices.Sort(keys)
	if slices.Contains(keys, clusteraffinity.AnyKey) {
		return []string{clusteraffinity.AnyKey}
	}
	return slices.Compact(keys)
}

// affinitiesInUse returns the affinities whose clusters may become targets when the binding is
// scheduled next. A nil affinity selects every cluster. dependsOnAll is true if every cluster may
// become a target.
func affinitiesInUse(
	meta metav1.Object,
	spec *workv1alpha2.ResourceBindingSpec,
	status *workv1alpha2.ResourceBindingStatus,
) (affinities []*policyv1alpha1.ClusterAffinity, dependsOnAll bool) {
	placement := spec.Placement
	switch {
	case placement == nil:
		return nil, false
	case len(placement.ClusterAffinities) == 0:
		return []*policyv1alpha1.ClusterAffinity{placement.ClusterAffinity}, false
	case status.SchedulerObservedGeneration != meta.GetGeneration():
		return nil, true
	}
	failed := conditions.HasStatus(status.Conditions, workv1alpha2.Scheduled, metav1.ConditionFalse)
	groups := relevantGroups(placement.ClusterAffinities, status.SchedulerObservedAffinityName, failed)
	for i := range groups {
		affinities = append(affinities, clusteraffinity.OfGroup(&groups[i], true)...)
	}
	return affinities, false
}

// relevantGroups returns the group in use or, after a failure, all groups, because the next attempt may
// use any of them.
func relevantGroups(groups []policyv1alpha1.ClusterAffinityTerm, activeGroup string, failed bool) []policyv1alpha1.ClusterAffinityTerm {
	if len(groups) == 0 || failed {
		return groups
	}
	first := groupIndex(groups, activeGroup)
	return groups[first : first+1]
}

// groupIndex returns the index of the affinity group with the given name, or 0 if it is not found.
func groupIndex(groups []policyv1alpha1.ClusterAffinityTerm, name string) int {
	for i := range groups {
		if groups[i].AffinityName == name {
			return i
		}
	}
	return 0
}
