package binding

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// IsWorkload reports whether the template has replicas that a scheduler places.
func IsWorkload(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Replicas > 0 || spec.ReplicaRequirements != nil || len(spec.Components) > 0
}

// AwaitsReplicas reports whether the placement is older than the number of replicas: the template has
// replicas, and no cluster has any of them yet. This occurs when a rule for replicas is added for
// an object that is propagated already, and when a template is scaled up from 0. The scheduler
// assigns the replicas next. Components are scheduled without replicas of clusters, so they await
// none.
func AwaitsReplicas(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Replicas > 0 && len(spec.Components) == 0 && len(spec.Clusters) > 0 &&
		!slices.ContainsFunc(spec.Clusters, func(cluster workv1alpha2.TargetCluster) bool { return cluster.Replicas > 0 })
}

// IsDivided reports whether the replicas are divided among the clusters. Otherwise each cluster
// runs all replicas.
func IsDivided(spec *workv1alpha2.ResourceBindingSpec) bool {
	if spec.Placement == nil || spec.Placement.ReplicaScheduling == nil {
		return false
	}
	return spec.Placement.ReplicaScheduling.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided
}

// TargetClusters returns the clusters that must run the current template: first the scheduled
// clusters, then the clusters of dependent bindings, both in the order of the spec. Each cluster
// occurs once.
//
// The replicas in the snapshot of a dependent binding belong to that binding and not to this
// template. So a workload that is in a cluster only as a dependency runs there with the replicas of
// its own template.
func TargetClusters(spec *workv1alpha2.ResourceBindingSpec) []workv1alpha2.TargetCluster {
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

// GainingClusters returns the names of the targets in after that are new or have more replicas than
// in before, in the order of after.
func GainingClusters(before, after []workv1alpha2.TargetCluster) []string {
	replicas := make(map[string]int32, len(before))
	for i := range before {
		replicas[before[i].Name] = before[i].Replicas
	}
	var gaining []string
	for i := range after {
		if had, ok := replicas[after[i].Name]; !ok || after[i].Replicas > had {
			gaining = append(gaining, after[i].Name)
		}
	}
	return gaining
}

// ExpectedClusters returns the clusters in which the binding may have a Work: its targets, and the
// clusters under graceful eviction. A Work in any other cluster is an orphan.
func ExpectedClusters(spec *workv1alpha2.ResourceBindingSpec) sets.Set[string] {
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

// DirectlyPurgedClusters returns the clusters from which the Work must be deleted before changes
// are delivered to any other cluster. Otherwise two clusters could use, at the same time, the state
// that is passed from one to the next. The result does not contain expected clusters, because such
// a cluster became a target again and keeps its Work.
func DirectlyPurgedClusters(spec *workv1alpha2.ResourceBindingSpec) sets.Set[string] {
	purged := sets.New[string]()
	for _, task := range spec.GracefulEvictionTasks {
		if task.PurgeMode == policyv1alpha1.PurgeModeDirectly {
			purged.Insert(task.FromCluster)
		}
	}
	return purged.Difference(ExpectedClusters(spec))
}
