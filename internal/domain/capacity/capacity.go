// Package capacity answers: how much more can a cluster take, going by what it
// reports about itself?
//
// The answer is an estimate from sums over all nodes, refined by the grades of
// nodes where a cluster reports them. It knows nothing of node selectors, taints
// or quotas; an estimator inside the cluster does.
//
// Invariants:
//   - everything is a pure function; nothing passed in is modified;
//   - cpu counts in thousandths of a core, everything else in whole units, on both
//     sides of a comparison, however the quantities are written;
//   - numbers saturate and never wrap, and a cluster that reports nothing has no
//     room.
package capacity

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Replicas is how many more replicas with these requirements the cluster can take.
// Without requirements only the number of pods limits it. With models the grades
// of nodes count instead of the sum over all nodes, where the cluster reports them.
func Replicas(cluster *clusterv1alpha1.Cluster, requirements *workv1alpha2.ReplicaRequirements, models bool) int32 {
	summary := cluster.Status.ResourceSummary
	pods := freePods(summary)
	if pods <= 0 {
		return 0
	}
	if requirements == nil {
		return clamp(pods)
	}
	request := amounts(requirements.ResourceRequest)
	if models {
		if room, ok := replicasOnModels(cluster, request); ok {
			return clamp(min(pods, room))
		}
	}
	return clamp(min(pods, fits(summary, request)))
}

// freePods is how many more pods the cluster may have.
func freePods(summary *clusterv1alpha1.ResourceSummary) int64 {
	if summary == nil {
		return 0
	}
	return free(summary, corev1.ResourcePods)
}

// free is what is left of a resource, at least 0.
func free(summary *clusterv1alpha1.ResourceSummary, name corev1.ResourceName) int64 {
	left := amount(name, summary.Allocatable[name])
	left = subtract(left, amount(name, summary.Allocated[name]))
	return max(0, subtract(left, amount(name, summary.Allocating[name])))
}

// fits is how often the request fits into what is left.
func fits(summary *clusterv1alpha1.ResourceSummary, request map[corev1.ResourceName]int64) int64 {
	most := int64(math.MaxInt64)
	for name, wanted := range request {
		most = min(most, free(summary, name)/wanted)
	}
	return most
}

// amounts are the positive quantities of a list as numbers.
func amounts(list corev1.ResourceList) map[corev1.ResourceName]int64 {
	numbers := make(map[corev1.ResourceName]int64, len(list))
	for name, quantity := range list {
		if n := amount(name, quantity); n > 0 {
			numbers[name] = n
		}
	}
	return numbers
}

// amount is a quantity in the unit in which the resource is counted, rounded up.
func amount(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		if quantity.CmpInt64(math.MaxInt64/1000) > 0 {
			return math.MaxInt64
		}
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// onNodes tells whether a resource is one that nodes have. Others, such as limits,
// do not limit what fits onto a node.
func onNodes(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return true
	}
	text := string(name)
	return strings.HasPrefix(text, corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(text, corev1.ResourceAttachableVolumesPrefix) ||
		strings.Contains(text, "/") && !strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix)
}

func clamp(n int64) int32 { return int32(max(0, min(n, math.MaxInt32))) } //nolint:gosec // bounded by the expression

// subtract stops at the smallest number.
func subtract(a, b int64) int64 {
	if b > 0 && a < math.MinInt64+b {
		return math.MinInt64
	}
	if b < 0 && a > math.MaxInt64+b {
		return math.MaxInt64
	}
	return a - b
}

// add adds numbers that are not negative and stops at the largest.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// multiply multiplies numbers that are not negative and stops at the largest.
func multiply(a, b int64) int64 {
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
