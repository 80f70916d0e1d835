package nodecapacity

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/capacity"
)

// Quota holds the part of a ResourceQuota that limits the replicas of workloads. It is immutable.
type Quota struct {
	// requirements are the conditions of the scopes. A Pod must fulfill all of them.
	requirements []corev1.ScopedResourceSelectorRequirement
	// free are the amounts that Pods may still request.
	free map[corev1.ResourceName]int64
}

// NewQuota returns the relevant part of the quota, and keeps no reference to it.
func NewQuota(quota *corev1.ResourceQuota) Quota {
	q := Quota{free: map[corev1.ResourceName]int64{}}
	for _, scope := range quota.Spec.Scopes {
		q.requirements = append(q.requirements,
			corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if quota.Spec.ScopeSelector != nil {
		for _, each := range quota.Spec.ScopeSelector.MatchExpressions {
			q.requirements = append(q.requirements, *each.DeepCopy())
		}
	}
	for spelling, hard := range quota.Status.Hard {
		used, isUsed := quota.Status.Used[spelling]
		name, isLimited := quotaResource(spelling)
		if !isUsed || !isLimited {
			continue
		}
		free := max(0, capacity.SaturatingSubtract(capacity.ResourceAmount(name, hard), capacity.ResourceAmount(name, used)))
		if other, ok := q.free[name]; ok {
			free = min(free, other)
		}
		q.free[name] = free
	}
	return q
}

// quotaResource returns the Pod resource whose requests the quota's entry limits. ok is false for entries
// that limit something else, such as limits, storage or object counts.
func quotaResource(entry corev1.ResourceName) (name corev1.ResourceName, ok bool) {
	name = corev1.ResourceName(strings.TrimPrefix(string(entry), corev1.DefaultResourceRequestsPrefix))
	return name, name == corev1.ResourceCPU || name == corev1.ResourceMemory || isExtendedResource(name)
}

// isExtendedResource reports whether the resource is neither a Kubernetes resource nor an object count.
func isExtendedResource(name corev1.ResourceName) bool {
	domain, _, isQualified := strings.Cut(string(name), "/")
	return isQualified && domain != "count" &&
		!strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) && !strings.HasPrefix(string(name), "limits.") &&
		!strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// applies reports whether the quota limits Pods with the given priority class and requests. It returns
// false if a scope depends on other properties of Pods.
func (q *Quota) applies(priorityClass string, requests map[corev1.ResourceName]int64) bool {
	return !slices.ContainsFunc(q.requirements, func(each corev1.ScopedResourceSelectorRequirement) bool {
		switch each.ScopeName {
		case corev1.ResourceQuotaScopePriorityClass:
			return !matchesClass(&each, priorityClass)
		case corev1.ResourceQuotaScopeNotBestEffort:
			// A Pod that requests CPU or memory never has the QoS class BestEffort.
			return requests[corev1.ResourceCPU] == 0 && requests[corev1.ResourceMemory] == 0
		default:
			return true
		}
	})
}

func matchesClass(requirement *corev1.ScopedResourceSelectorRequirement, priorityClass string) bool {
	switch requirement.Operator {
	case corev1.ScopeSelectorOpExists:
		return priorityClass != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return priorityClass == ""
	case corev1.ScopeSelectorOpIn:
		return slices.Contains(requirement.Values, priorityClass)
	case corev1.ScopeSelectorOpNotIn:
		return !slices.Contains(requirement.Values, priorityClass)
	default:
		return false
	}
}

// QuotaReplicas returns how many replicas with the given requirements all quotas in their namespace
// permit, or Unlimited if no quota limits them. assumed are workloads whose Pods the quotas do not
// count yet.
func QuotaReplicas(quotas []Quota, requirements *workv1alpha2.ReplicaRequirements, assumed []capacity.AssumedWorkload) int32 {
	if requirements == nil {
		return Unlimited
	}
	replica := workv1alpha2.Component{Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
		ResourceRequest: requirements.ResourceRequest, PriorityClassName: requirements.PriorityClassName,
	}}
	return QuotaSets(quotas, requirements.Namespace, []workv1alpha2.Component{replica}, assumed)
}

// QuotaSets returns how many sets of components all quotas in the namespace permit, or Unlimited if no
// quota limits them. assumed are workloads whose Pods the quotas do not count yet.
func QuotaSets(quotas []Quota, namespace string, components []workv1alpha2.Component, assumed []capacity.AssumedWorkload) int32 {
	sets := int64(math.MaxInt64)
	for i := range quotas {
		quota := &quotas[i]
		set := quota.demandOf(components)
		if namespace == "" || len(set) == 0 {
			continue
		}
		reserved := map[corev1.ResourceName]int64{}
		for _, workload := range assumed {
			if workload.Namespace == namespace {
				addAmounts(reserved, quota.demandOf(workload.Components))
			}
		}
		for name, requested := range set {
			sets = min(sets, max(0, capacity.SaturatingSubtract(quota.free[name], reserved[name]))/requested)
		}
	}
	return capacity.ClampToInt32(sets)
}

// demandOf returns the positive requests of a set of components that the quota limits.
func (q *Quota) demandOf(components []workv1alpha2.Component) map[corev1.ResourceName]int64 {
	demand := map[corev1.ResourceName]int64{}
	for i := range components {
		requirements := componentRequirements(&components[i])
		requests := capacity.ResourceAmounts(requirements.ResourceRequest)
		if components[i].Replicas <= 0 || !q.applies(requirements.PriorityClassName, requests) {
			continue
		}
		for name, requested := range requests {
			if _, isLimited := q.free[name]; isLimited {
				demand[name] = capacity.SaturatingAdd(demand[name], capacity.SaturatingMultiply(requested, int64(components[i].Replicas)))
			}
		}
	}
	return demand
}

func addAmounts(to, amounts map[corev1.ResourceName]int64) {
	for name, value := range amounts {
		to[name] = capacity.SaturatingAdd(to[name], value)
	}
}
