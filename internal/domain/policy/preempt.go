package policy

import (
	"cmp"
	"fmt"
	"slices"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// Preempts reports whether preemptor takes a template over from the policy that claims it. claimant is
// this policy, or nil if it is not found, which is an error if its priority is needed. Implicit
// priorities and names are ignored.
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

// CanPreempt reports whether the policy enables preemption and is not being deleted.
func CanPreempt(policy Object) bool {
	return policy.PropagationSpec().Preemption == policyv1alpha1.PreemptAlways && !isTerminating(policy)
}

// PreemptionCandidates returns the candidates that may preempt a policy whose spec.priority was lowered
// from before to after: those with a priority above after but not above before, highest first. The
// candidates have the policy's kind and namespace.
func PreemptionCandidates(before, after int32, candidates []Object) []Object {
	var preemptors []Object
	for _, policy := range candidates {
		if priority := ExplicitPriority(policy); after < priority && priority <= before && CanPreempt(policy) {
			preemptors = append(preemptors, policy)
		}
	}
	slices.SortFunc(preemptors, func(a, b Object) int {
		return cmp.Or(
			cmp.Compare(ExplicitPriority(b), ExplicitPriority(a)),
			cmp.Compare(a.GetName(), b.GetName()),
		)
	})
	return preemptors
}
