// Package capacity computes how many more replicas fit into a cluster, according to the status of
// the Cluster, and how many sets of components fit onto nodes.
//
// The result for a cluster is an estimate from sums over all nodes. If a cluster reports grades of nodes, the
// grades make the estimate more exact. Node selectors, taints and quotas are not considered; an
// estimator inside the cluster considers them.
//
// Invariants:
//   - Every function is pure and modifies no argument.
//   - Numbers saturate and never overflow. A cluster that reports nothing has no capacity.
package capacity

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// replicaRequest is the request of one replica in numbers.
type replicaRequest struct {
	// isUnlimited means that a replica has no requirements, so that only the number of Pods counts.
	isUnlimited bool
	amounts     map[corev1.ResourceName]int64
	// columns and vector are the part of the request that a node provides.
	columns ResourceColumns
	vector  ResourceVector
}

func newReplicaRequest(requirements *workv1alpha2.ReplicaRequirements) replicaRequest {
	if requirements == nil {
		return replicaRequest{isUnlimited: true}
	}
	amounts := ResourceAmounts(requirements.ResourceRequest)
	onNode := PodRequest(amounts)
	columns := ResourceColumnsOf(onNode)
	return replicaRequest{amounts: amounts, columns: columns, vector: columns.Vector(onNode)}
}

// availableReplicas returns how many more replicas fit. Without requirements only the number of Pods
// limits the result. If the cluster reports grades of nodes, the grades are used instead of the sum
// over all nodes.
func (r room) availableReplicas(request *replicaRequest) int32 {
	pods := freePods(r.summary)
	switch {
	case pods <= 0:
		return 0
	case request.isUnlimited:
		return ClampToInt32(pods)
	case r.hasGrades:
		return ClampToInt32(min(pods, countReplicas(r.grades, request.columns, request.vector)))
	default:
		return ClampToInt32(min(pods, countFits(r.summary, request.amounts)))
	}
}

// freePods returns how many more pods the cluster may have.
func freePods(summary *clusterv1alpha1.ResourceSummary) int64 {
	if summary == nil {
		return 0
	}
	return freeAmount(summary, corev1.ResourcePods)
}

// freeAmount returns the unused amount of a resource, at least 0.
func freeAmount(summary *clusterv1alpha1.ResourceSummary, name corev1.ResourceName) int64 {
	remaining := ResourceAmount(name, summary.Allocatable[name])
	remaining = SaturatingSubtract(remaining, ResourceAmount(name, summary.Allocated[name]))
	return max(0, SaturatingSubtract(remaining, ResourceAmount(name, summary.Allocating[name])))
}

// countFits returns how many times the request fits into the free resources.
func countFits(summary *clusterv1alpha1.ResourceSummary, request map[corev1.ResourceName]int64) int64 {
	count := int64(math.MaxInt64)
	for name, requested := range request {
		count = min(count, freeAmount(summary, name)/requested)
	}
	return count
}
