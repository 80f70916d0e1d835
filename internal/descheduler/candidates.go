package descheduler

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

// candidate is a target cluster with fewer ready than assigned replicas.
type candidate struct {
	Cluster string
	// Assigned is the number of replicas in the binding's target.
	Assigned int32
	// Ready is the number of ready replicas in the last reported status, and less than Assigned. It is
	// unknownReady if the status does not contain the number.
	Ready int64
}

// candidatesOf returns the target clusters that may lose replicas, in the order of the targets. It
// returns nil if the descheduler must not change the binding.
func candidatesOf(bound binding.Object, clusters placement.ClusterLookup) []candidate {
	if !hasMovableReplicas(bound.BindingSpec()) {
		return nil
	}
	candidates := unreadyTargets(bound, clusters)
	if len(candidates) == 0 || !isSettled(bound, clusters) || !isDividedByCapacity(bound) {
		return nil
	}
	return candidates
}

// hasMovableReplicas reports whether a single replica of the workload can move to another cluster.
//
// All components of a multi-component workload run in the same cluster. Jobs are excluded because
// their completions are divided together with their replicas, and an API server rejects a change of
// an existing Job's completions.
func hasMovableReplicas(spec *workv1alpha2.ResourceBindingSpec) bool {
	kind := schema.FromAPIVersionAndKind(spec.Resource.APIVersion, spec.Resource.Kind).GroupKind()
	return spec.Replicas > 0 && placement.HasReplicas(spec) && kind != schema.GroupKind{Group: "batch", Kind: "Job"}
}

// isSettled reports whether a scheduler handles the binding and has processed its current placement,
// replicas and targets. A binding with suspended scheduling is not settled, because a user or a queue
// chooses its clusters.
//
// The scheduler's name does not matter, because every scheduler that records the placement and the
// generation also places missing replicas.
func isSettled(bound binding.Object, clusters placement.ClusterLookup) bool {
	spec := bound.BindingSpec()
	if !placement.IsSchedulable(bound, spec) {
		return false
	}
	decision, err := placement.Decide(bound, spec, bound.BindingStatus(), clusters, placement.Features{})
	return err == nil && decision.Action == placement.ActionNone
}

// isDividedByCapacity reports whether the scheduler divided the replicas by the clusters' capacity.
// With any other division, it would place removed replicas in the same cluster again. The recorded
// placement is missing or invalid only if no Karmada scheduler divided the replicas.
func isDividedByCapacity(bound binding.Object) bool {
	applied := &policyv1alpha1.Placement{}
	text := bound.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
	return json.Unmarshal([]byte(text), applied) == nil && placement.DividesByCapacity(applied.ReplicaScheduling)
}

// unreadyTargets returns the targets with fewer ready than assigned replicas, in clusters whose
// reported status is current. If several targets name the same cluster, only the first one counts,
// because Works are rendered from it.
func unreadyTargets(bound binding.Object, clusters placement.ClusterLookup) []candidate {
	spec, reported := bound.BindingSpec(), reportedStatuses(bound.BindingStatus())
	var candidates []candidate
	seen := sets.New[string]()
	for i := range spec.Clusters {
		target := &spec.Clusters[i]
		if seen.Has(target.Name) {
			continue
		}
		seen.Insert(target.Name)
		item := reported[target.Name]
		ready := readyReplicas(item)
		if ready >= int64(target.Replicas) || target.Replicas < 1 || isOutdated(item) ||
			isExempt(bound, target.Name) || !reportsCurrentStatus(clusters(target.Name)) {
			continue
		}
		candidates = append(candidates, candidate{Cluster: target.Name, Assigned: target.Replicas, Ready: ready})
	}
	return candidates
}

// isOutdated reports whether the cluster has not applied the current manifest. Its Pods then belong to
// an earlier replica count, so unschedulable replicas that are already removed would count again.
func isOutdated(item *workv1alpha2.AggregatedStatusItem) bool {
	return item != nil && !item.Applied
}

// isExempt reports whether the descheduler leaves the cluster's replicas alone: the workload is being
// evicted from the cluster, or a user suspended dispatching to the cluster.
func isExempt(bound binding.Object, cluster string) bool {
	spec := bound.BindingSpec()
	for i := range spec.GracefulEvictionTasks {
		if spec.GracefulEvictionTasks[i].FromCluster == cluster {
			return true
		}
	}
	return binding.IsDispatchSuspended(bound, cluster)
}

// reportsCurrentStatus reports whether the statuses from the cluster are up to date. Statuses from a
// cluster that is not found, terminating or not ready may be old, and failover moves its workloads.
func reportsCurrentStatus(cluster *clusterv1alpha1.Cluster) bool {
	return cluster != nil && cluster.DeletionTimestamp == nil &&
		meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}
