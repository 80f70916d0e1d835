package policy

import (
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Suspend merges the suspension of a policy into that of a binding. The policy
// owns what concerns dispatching; scheduling belongs to whoever set it on the
// binding, and stays, even when false. The arguments are not modified and the
// result shares nothing with them.
func Suspend(policy *policyv1alpha1.Suspension, binding *workv1alpha2.Suspension) *workv1alpha2.Suspension {
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

// AffinityGroups returns the groups that the labels of a template put it into:
// "key=value" for each label key that the placement groups by and that the
// template has, even with an empty value. It returns nil for no group at all.
func AffinityGroups(placement *policyv1alpha1.Placement, templateLabels map[string]string) *workv1alpha2.WorkloadAffinityGroups {
	if placement.WorkloadAffinity == nil {
		return nil
	}
	groups := workv1alpha2.WorkloadAffinityGroups{}
	if term := placement.WorkloadAffinity.Affinity; term != nil {
		groups.AffinityGroup = groupOf(term.GroupByLabelKey, templateLabels)
	}
	if term := placement.WorkloadAffinity.AntiAffinity; term != nil {
		groups.AntiAffinityGroup = groupOf(term.GroupByLabelKey, templateLabels)
	}
	if groups == (workv1alpha2.WorkloadAffinityGroups{}) {
		return nil
	}
	return &groups
}

func groupOf(key string, templateLabels map[string]string) string {
	value, ok := templateLabels[key]
	if !ok {
		return ""
	}
	return key + "=" + value
}
