// Package quota decides whether the bindings of a namespace fit into its FederatedResourceQuotas.
//
// The usage of a binding is what its workload requests in all clusters for which it is scheduled. The
// usage of a namespace is always computed from its bindings, and never counted up and down. Requests
// that are admitted but not yet visible are counted by reservations, which expire.
//
// Invariants:
//   - A resource whose usage does not grow is never refused.
//   - No admitted request makes the usage of a namespace exceed a limit.
//   - A request that is denied or that fails leaves no usage behind after ReservationLifetime.
package quota

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// BindingUsage returns the resources that a binding's workload requests in all clusters of
// spec.clusters. Clusters that are only evicted, or that only other bindings require, do not count.
//
// A workload with components uses the sum of its components once in each cluster. Every other workload
// uses the request of one replica, multiplied by the number of scheduled replicas. Negative requests
// and replicas count as 0, because they would otherwise make room for other workloads.
func BindingUsage(spec *workv1alpha2.ResourceBindingSpec) corev1.ResourceList {
	usage := corev1.ResourceList{}
	if len(spec.Components) > 0 {
		for i := range spec.Components {
			if component := &spec.Components[i]; component.ReplicaRequirements != nil {
				addProduct(usage, component.ReplicaRequirements.ResourceRequest, int64(component.Replicas)*int64(len(spec.Clusters)))
			}
		}
		return usage
	}
	if spec.ReplicaRequirements != nil {
		addProduct(usage, spec.ReplicaRequirements.ResourceRequest, scheduledReplicas(spec))
	}
	return usage
}

func scheduledReplicas(spec *workv1alpha2.ResourceBindingSpec) (replicas int64) {
	for i := range spec.Clusters {
		replicas += int64(max(spec.Clusters[i].Replicas, 0))
	}
	return replicas
}

// addProduct adds the positive quantities of request, multiplied by factor, to the usage.
func addProduct(usage, request corev1.ResourceList, factor int64) {
	if factor <= 0 {
		return
	}
	for name, quantity := range request {
		if quantity.Sign() <= 0 {
			continue
		}
		product := quantity.DeepCopy()
		product.Mul(factor)
		addQuantity(usage, name, product)
	}
}

// AddUsage adds the quantities of the usage to the sum.
func AddUsage(sum, usage corev1.ResourceList) {
	for name, quantity := range usage {
		addQuantity(sum, name, quantity)
	}
}

// UsageOf returns status.overallUsed of a quota: the part of the usage that the quota limits. A quantity
// that is too large for the API is reported as the largest possible one.
func UsageOf(quota *policyv1alpha1.FederatedResourceQuota, usage corev1.ResourceList) corev1.ResourceList {
	limited := corev1.ResourceList{}
	for name := range quota.Spec.Overall {
		used, isUsed := usage[name]
		if largest := resource.NewQuantity(math.MaxInt64, used.Format); used.Cmp(*largest) > 0 {
			used = *largest
		}
		if isUsed {
			limited[name] = used
		}
	}
	return limited
}

// IsEqual reports whether two lists contain the same resources with the same quantities.
func IsEqual(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		if other, ok := b[name]; !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// HasMoreRoom reports whether a changed quota may admit a request that it refused before: a resource
// is no longer limited, or more of it is unused.
func HasMoreRoom(before, after *policyv1alpha1.FederatedResourceQuota) bool {
	for name, limit := range before.Spec.Overall {
		newLimit, isLimited := after.Spec.Overall[name]
		if !isLimited {
			return true
		}
		// The room grows by (newLimit - limit) - (newUsed - used).
		growth, used := newLimit.DeepCopy(), after.Status.OverallUsed[name]
		growth.Sub(limit)
		growth.Sub(used)
		growth.Add(before.Status.OverallUsed[name])
		if growth.Sign() > 0 {
			return true
		}
	}
	return false
}
