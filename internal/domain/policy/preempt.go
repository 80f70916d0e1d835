package policy

import (
	"cmp"
	"fmt"
	"slices"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// Preempts reports whether a policy (preemptor) takes a template over from the policy that claims
// the template. claimant is the policy of the claim, or nil if it cannot be found. If the priority
// of the claimant is needed, a nil claimant is an error. Implicit priority and name are ignored.
//
//	preemptor                 claimed by                       preempts
//	PropagationPolicy         another PropagationPolicy        with higher spec.priority
//	PropagationPolicy         a ClusterPropagationPolicy       always
//	ClusterPropagationPolicy  another ClusterPropagationPolicy with higher spec.priority
//	ClusterPropagationPolicy  a PropagationPolicy              never
//	any                       itself, or no policy             never
func Preempts(preemptor Object, claim Claim, claimant Object) (bool, error) {
	switch {
	case claim == Claim{} || claim.MatchesPolicy(preemptor):
		return false, nil
	case claim.IsCluster() != IsCluster(preemptor):
		return claim.IsCluster(), nil
	case claimant == nil:
		return false, fmt.Errorf("policy %s, which claims the template, does not exist", claim)
	}
	return ExplicitPriority(preemptor) > ExplicitPriority(claimant), nil
}

// CanPreempt reports whether preemption is enabled in the policy.
func CanPreempt(policy Object) bool {
	return policy.PropagationSpec().Preemption == policyv1alpha1.PreemptAlways && !isTerminating(policy)
}

// PreemptionCandidates returns the policies that may preempt another policy after the spec.priority
// of the other policy was lowered from before to after. These are the policies with a priority above
// after and not above before, highest first. A policy without a priority has the priority 0.
// candidates are the policies of the kind and, for PropagationPolicies, of the namespace of the
// lowered policy.
func PreemptionCandidates(before, after int32, candidates []Object) []Object {
	var overtakers []Object
	for _, policy := range candidates {
		if priority := ExplicitPriority(policy); after < priority && priority <= before && CanPreempt(policy) {
			overtakers = append(overtakers, policy)
		}
	}
	slices.SortFunc(overtakers, func(a, b Object) int {
		return cmp.Or(
			cmp.Compare(ExplicitPriority(b), ExplicitPriority(a)),
			cmp.Compare(a.GetName(), b.GetName()),
		)
	})
	return overtakers
}
