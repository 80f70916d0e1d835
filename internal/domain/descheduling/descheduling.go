// Package descheduling decides which replicas a binding loses in clusters that cannot run them,
// so that the scheduler can place them in other clusters.
//
// Candidates returns the target clusters with fewer ready replicas than assigned replicas. The
// caller asks the estimators of these clusters for the replicas that are unschedulable for a long
// time, and Removals returns how many replicas each cluster loses.
//
// Invariants:
//   - Every function is pure and modifies no argument.
//   - No target gets more replicas, and no target is added or removed. A target can keep 0 replicas.
//   - A target keeps at least its ready replicas.
//   - Missing data is no reason for a removal: a cluster without an answer of an estimator keeps its
//     replicas.
//   - Nothing is removed while the scheduler has not finished its work on the binding. The
//     descheduler therefore removes no replicas that nothing would place again.
package descheduling

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

// Candidate is a target cluster with fewer ready replicas than assigned replicas.
type Candidate struct {
	Cluster string
	// Assigned is the number of replicas in the target of the binding.
	Assigned int32
	// Ready is the number of ready replicas in the last reported status. It is less than Assigned.
	// It is UnknownReady if the status does not contain it.
	Ready int64
}

// Candidates returns the clusters of a binding that may lose replicas, in the order of the targets.
// It returns nil if the descheduler must not change the binding.
func Candidates(bound binding.Object, clusters placement.ClusterLookup) []Candidate {
	if !hasMovableReplicas(bound.BindingSpec()) {
		return nil
	}
	candidates := undesiredTargets(bound, clusters)
	if len(candidates) == 0 || !isSettled(bound, clusters) || !isDividedByCapacity(bound) {
		return nil
	}
	return candidates
}

// hasMovableReplicas reports whether a replica of the workload can run in another cluster instead.
//
// A workload with several components runs completely in one cluster. A Job is excluded, because the
// completions of the Job are divided with its replicas, and an API server rejects a change of the
// completions of a Job that exists.
func hasMovableReplicas(spec *workv1alpha2.ResourceBindingSpec) bool {
	kind := schema.FromAPIVersionAndKind(spec.Resource.APIVersion, spec.Resource.Kind).GroupKind()
	return spec.Replicas > 0 && placement.HasReplicas(spec) && kind != schema.GroupKind{Group: "batch", Kind: "Job"}
}

// isSettled reports whether a scheduler handles the binding and has nothing to do for its present
// state.
//
// The name of the scheduler is not checked, because every scheduler that records the placement and
// the generation places missing replicas. A binding whose scheduling is suspended is not settled: a
// user or a queue chooses its clusters. The same is true after a change of the placement, of the
// replicas or of the targets, until the scheduler has processed the change.
func isSettled(bound binding.Object, clusters placement.ClusterLookup) bool {
	spec := bound.BindingSpec()
	if !placement.IsSchedulable(bound, spec) {
		return false
	}
	decision, err := placement.Decide(bound, spec, bound.BindingStatus(), clusters, placement.Features{})
	return err == nil && decision.Action == placement.ActionNone
}

// isDividedByCapacity reports whether the scheduler divided the replicas by the capacity of the
// clusters. With any other division, the scheduler would place removed replicas in the same cluster
// again. A binding whose recorded placement is missing or invalid was not divided by a scheduler of
// Karmada.
func isDividedByCapacity(bound binding.Object) bool {
	applied := &policyv1alpha1.Placement{}
	text := bound.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
	return json.Unmarshal([]byte(text), applied) == nil && placement.DividesByCapacity(applied.ReplicaScheduling)
}

// undesiredTargets returns the targets with fewer ready replicas than assigned replicas, in clusters
// whose reported status is current. If a cluster is a target twice, only the first target is used,
// because Works are rendered from the first target.
func undesiredTargets(bound binding.Object, clusters placement.ClusterLookup) []Candidate {
	spec, reported := bound.BindingSpec(), reportedStatuses(bound.BindingStatus())
	var candidates []Candidate
	seen := sets.New[string]()
	for i := range spec.Clusters {
		target := &spec.Clusters[i]
		if seen.Has(target.Name) {
			continue
		}
		seen.Insert(target.Name)
		item := reported[target.Name]
		ready := readyReplicas(item)
		if ready >= int64(target.Replicas) || target.Replicas < 1 || isOutdated(item) || isLeaving(bound, target.Name) || !isUsable(clusters(target.Name)) {
			continue
		}
		candidates = append(candidates, Candidate{Cluster: target.Name, Assigned: target.Replicas, Ready: ready})
	}
	return candidates
}

// isOutdated reports whether the cluster does not run the current manifest of the object. Its Pods
// then belong to an earlier number of replicas, so that a removal could count them twice.
func isOutdated(item *workv1alpha2.AggregatedStatusItem) bool {
	return item != nil && !item.Applied
}

// isLeaving reports whether the replicas of the binding in a cluster are managed by an eviction, or
// a user suspended the delivery of changes to the cluster.
func isLeaving(bound binding.Object, cluster string) bool {
	spec := bound.BindingSpec()
	for i := range spec.GracefulEvictionTasks {
		if spec.GracefulEvictionTasks[i].FromCluster == cluster {
			return true
		}
	}
	return binding.IsDispatchSuspended(bound, cluster)
}

// isUsable reports whether the status that a cluster reported is reliable. The status of a cluster
// that is unknown, terminating or not ready is old, and failover decides about its workloads.
func isUsable(cluster *clusterv1alpha1.Cluster) bool {
	return cluster != nil && cluster.DeletionTimestamp == nil &&
		meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}
