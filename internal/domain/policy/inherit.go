package policy

import (
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// MergeSuspension returns the suspension of a binding after the policy's suspension was applied. The
// dispatching fields come from the policy. The field scheduling belongs to the client that set it on
// the binding, and is kept even if it is false. The result shares no memory with the arguments.
func MergeSuspension(policy *policyv1alpha1.Suspension, binding *workv1alpha2.Suspension) *workv1alpha2.Suspension {
	var scheduling *bool
	if binding != nil && binding.Scheduling != nil {
		scheduling = new(*binding.Scheduling)
	}
	if policy == nil && scheduling == nil {
		return nil
	}
	merged := &workv1alpha2.Suspension{Scheduling: scheduling}
	if policy != nil {
		policy.DeepCopyInto(&merged.Suspension)
	}
	return merged
}

// WorkloadAffinityGroups returns the template's workload affinity groups, or nil if it is in none. A
// group is "key=value" for a label key that the placement names and the template has, even if the value
// is empty.
func WorkloadAffinityGroups(placement *policyv1alpha1.Placement, templateLabels map[string]string) *workv1alpha2.WorkloadAffinityGroups {
	if placement.WorkloadAffinity == nil {
		return nil
	}
	groups := workv1alpha2.WorkloadAffinityGroups{}
	if term := placement.WorkloadAffinity.Affinity; term != nil {
		groups.AffinityGroup = affinityGroup(term.GroupByLabelKey, templateLabels)
	}
	if term := placement.WorkloadAffinity.AntiAffinity; term != nil {
		groups.AntiAffinityGroup = affinityGroup(term.GroupByLabelKey, templateLabels)
	}
	if groups == (workv1alpha2.WorkloadAffinityGroups{}) {
		return nil
	}
	return &groups
}

func affinityGroup(key string, templateLabels map[string]string) string {
	value, ok := templateLabels[key]
	if !ok {
		return ""
	}
	return key + "=" + value
}
