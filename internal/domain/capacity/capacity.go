// Package capacity answers: how many more replicas fit into a cluster, according to the status of
// the Cluster?
//
// The result is an estimate from sums over all nodes. If a cluster reports grades of nodes, the
// grades make the estimate more exact. Node selectors, taints and quotas are not considered; an
// estimator inside the cluster considers them.
//
// Invariants:
//   - Every function is pure and modifies no argument.
//   - CPU is counted in thousandths of a core, everything else in whole units. So amounts can be
//     compared, independent of the notation of the quantities.
//   - Numbers saturate and never overflow. A cluster that reports nothing has no capacity.
package capacity

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// AvailableReplicas returns how many more replicas with these requirements fit into the cluster.
// Without requirements only the number of Pods limits the result. If models is true and the cluster
// reports grades of nodes, the grades are used instead of the sum over all nodes.
func AvailableReplicas(cluster *clusterv1alpha1.Cluster, requirements *workv1alpha2.ReplicaRequirements, models bool) int32 {
	summary := cluster.Status.ResourceSummary
	pods := freePods(summary)
	if pods <= 0 {
		return 0
	}
	if requirements == nil {
		return clamp(pods)
	}
	request := requestAmounts(requirements.ResourceRequest)
	if models {
		if replicas, ok := replicasByGrade(cluster, request); ok {
			return clamp(min(pods, replicas))
		}
	}
	return clamp(min(pods, countFits(summary, request)))
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
	remaining := amount(name, summary.Allocatable[name])
	remaining = subtractSaturated(remaining, amount(name, summary.Allocated[name]))
	return max(0, subtractSaturated(remaining, amount(name, summary.Allocating[name])))
}

// countFits returns how many times the request fits into the free resources.
func countFits(summary *clusterv1alpha1.ResourceSummary, request map[corev1.ResourceName]int64) int64 {
	count := int64(math.MaxInt64)
	for name, requested := range request {
		count = min(count, freeAmount(summary, name)/requested)
	}
	return count
}

// requestAmounts converts the positive quantities of a list to numbers.
func requestAmounts(list corev1.ResourceList) map[corev1.ResourceName]int64 {
	amounts := make(map[corev1.ResourceName]int64, len(list))
	for name, quantity := range list {
		if value := amount(name, quantity); value > 0 {
			amounts[name] = value
		}
	}
	return amounts
}

// amount converts a quantity to the unit in which the resource is counted and rounds up.
func amount(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		if quantity.CmpInt64(math.MaxInt64/1000) > 0 {
			return math.MaxInt64
		}
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// isNodeResource reports whether nodes have the resource. Resources that nodes do not have, such as
// limits, do not restrict how many Pods fit onto a node.
func isNodeResource(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return true
	}
	prefixed := string(name)
	return strings.HasPrefix(prefixed, corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(prefixed, corev1.ResourceAttachableVolumesPrefix) ||
		strings.Contains(prefixed, "/") && !strings.HasPrefix(prefixed, corev1.DefaultResourceRequestsPrefix)
}

func clamp(n int64) int32 { return int32(max(0, min(n, math.MaxInt32))) } // bounded by the expression

// subtractSaturated returns a - b, limited to the range of int64.
func subtractSaturated(a, b int64) int64 {
	if b > 0 && a < math.MinInt64+b {
		return math.MinInt64
	}
	if b < 0 && a > math.MaxInt64+b {
		return math.MaxInt64
	}
	return a - b
}

// addSaturated adds two non-negative numbers and returns math.MaxInt64 on overflow.
func addSaturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// multiplySaturated multiplies two non-negative numbers and returns math.MaxInt64 on overflow.
func multiplySaturated(a, b int64) int64 {
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
