package policy

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Best returns the candidate that takes precedence for an unclaimed template, or nil if no candidate
// selects it. PropagationPolicies in the template's namespace take precedence over
// ClusterPropagationPolicies, then the higher explicit priority, then the higher implicit priority, and
// then the alphabetically smaller name. Policies that are being deleted and PropagationPolicies in
// other namespaces are ignored.
//
// Best compares every candidate. Index.Best returns the same result from an index.
func Best(template *unstructured.Unstructured, candidates []Object) Object {
	var best *candidate
	for _, policy := range candidates {
		if isTerminating(policy) || !inScope(policy, template) {
			continue
		}
		implicit := ImplicitPriority(policy.PropagationSpec().ResourceSelectors, template)
		if implicit == MatchNone {
			continue
		}
		if c := newCandidate(policy, implicit); best == nil || c.compare(best) < 0 {
			best = c
		}
	}
	if best == nil {
		return nil
	}
	return best.policy
}

func inScope(policy Object, template *unstructured.Unstructured) bool {
	return IsCluster(policy) || policy.GetNamespace() == template.GetNamespace()
}

// candidate is a policy with a copy of its rank, so that sorted lists stay sorted if the policy changes.
type candidate struct {
	policy   Object
	cluster  bool
	explicit int32
	implicit MatchPriority
	name     string
}

func newCandidate(policy Object, implicit MatchPriority) *candidate {
	return &candidate{
		policy:   policy,
		cluster:  IsCluster(policy),
		explicit: ExplicitPriority(policy),
		implicit: implicit,
		name:     policy.GetName(),
	}
}

// compare returns a negative number if c takes precedence over other.
func (c *candidate) compare(other *candidate) int {
	if c.cluster != other.cluster {
		if c.cluster {
			return 1
		}
		return -1
	}
	return cmp.Or(
		cmp.Compare(other.explicit, c.explicit),
		cmp.Compare(other.implicit, c.implicit),
		cmp.Compare(c.name, other.name),
	)
}
