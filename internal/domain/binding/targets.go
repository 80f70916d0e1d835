package binding

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// IsWorkload tells whether the template has replicas for a scheduler to place.
func IsWorkload(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Replicas > 0 || spec.ReplicaRequirements != nil || len(spec.Components) > 0
}

// Divided tells whether the replicas are spread over the clusters, instead of
// all of them running in every cluster.
func Divided(spec *workv1alpha2.ResourceBindingSpec) bool {
	if spec.Placement == nil || spec.Placement.ReplicaScheduling == nil {
		return false
	}
	return spec.Placement.ReplicaScheduling.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided
}

// Targets are the clusters that must run the current template: the scheduled
// ones in their order, then those which a binding that depends on this one
// needs, in the order in which they are listed. Each cluster occurs once.
//
// The replicas recorded in a dependent binding's snapshot are that binding's own
// and say nothing about this template. A workload that is in a cluster only as a
// dependency therefore runs with the replicas of its template there.
func Targets(spec *workv1alpha2.ResourceBindingSpec) []workv1alpha2.TargetCluster {
	targets := make([]workv1alpha2.TargetCluster, 0, len(spec.Clusters))
	seen := sets.New[string]()
	for _, cluster := range spec.Clusters {
		if seen.Has(cluster.Name) {
			continue
		}
		seen.Insert(cluster.Name)
		targets = append(targets, *cluster.DeepCopy())
	}
	workload := IsWorkload(spec)
	for _, snapshot := range spec.RequiredBy {
		for _, cluster := range snapshot.Clusters {
			if seen.Has(cluster.Name) {
				continue
			}
			seen.Insert(cluster.Name)
			target := *cluster.DeepCopy()
			if workload {
				target = workv1alpha2.TargetCluster{Name: cluster.Name, Replicas: spec.Replicas}
			}
			targets = append(targets, target)
		}
	}
	return targets
}

// Expected are the clusters in which a Work of the binding has a reason to be:
// its targets, and clusters being evicted that are to be emptied later. A Work
// anywhere else is an orphan.
func Expected(spec *workv1alpha2.ResourceBindingSpec) sets.Set[string] {
	expected := sets.New[string]()
	for _, cluster := range spec.Clusters {
		expected.Insert(cluster.Name)
	}
	for _, snapshot := range spec.RequiredBy {
		for _, cluster := range snapshot.Clusters {
			expected.Insert(cluster.Name)
		}
	}
	for _, task := range spec.GracefulEvictionTasks {
		if task.PurgeMode != policyv1alpha1.PurgeModeDirectly {
			expected.Insert(task.FromCluster)
		}
	}
	return expected
}

// DirectlyPurged are the clusters that must be empty before any other cluster
// is brought up to date: state handed from one cluster to the next may never be
// in use in both. A cluster that is expected to have a Work, because it became a
// target again meanwhile, is not one of them: nobody will ever empty it.
func DirectlyPurged(spec *workv1alpha2.ResourceBindingSpec) sets.Set[string] {
	purged := sets.New[string]()
	for _, task := range spec.GracefulEvictionTasks {
		if task.PurgeMode == policyv1alpha1.PurgeModeDirectly {
			purged.Insert(task.FromCluster)
		}
	}
	return purged.Difference(Expected(spec))
}

// Suspended tells whether the user holds back changes to a cluster: because
// dispatching stands still altogether, or for this cluster by name.
func Suspended(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	suspension := spec.Suspension
	if suspension == nil {
		return false
	}
	if suspension.Dispatching != nil && *suspension.Dispatching {
		return true
	}
	return suspension.DispatchingOnClusters != nil &&
		slices.Contains(suspension.DispatchingOnClusters.ClusterNames, cluster)
}
