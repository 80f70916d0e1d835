package policy

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/binding"
)

// HasRelevantPolicyChange reports whether an update of a policy can affect templates. This is the
// case if the spec changed, if the policy is being deleted, or if the permanent ID changed, because
// a claim requires the ID.
func HasRelevantPolicyChange(before, after Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		isTerminating(before) != isTerminating(after) ||
		ClaimOf(before) != ClaimOf(after)
}

// CauseOfUpdate returns the trigger of an update of a template. The trigger is not a change by a
// user if a Lazy policy takes the template over from another policy, because such an update changes
// only labels and annotations of Karmada. get returns a policy by name, or nil.
func CauseOfUpdate(before, after *unstructured.Unstructured, get func(namespace, name string) Object) Trigger {
	older, claimed := ClaimedBy(before)
	newer, stillClaimed := ClaimedBy(after)
	if !claimed || !stillClaimed || older == newer {
		return TemplateChanged
	}
	policy := get(newer.Namespace, newer.Name)
	if policy == nil || !IsLazy(policy) || HasUserChange(before, after) {
		return TemplateChanged
	}
	return PolicyChanged
}

// ShouldRecordApply reports whether a write of the binding is recorded as an event on the template.
// The event is recorded if the policy is applied for the first time, if another policy was applied
// before, or if the policy changed. A change of the template itself is not recorded, because its
// author expects the write. before is the binding before the write, or nil if there was none.
func ShouldRecordApply(before binding.Object, policy Object, cause Trigger) bool {
	if before == nil || cause == PolicyChanged {
		return true
	}
	claim, _ := ClaimedBy(before)
	return claim != ClaimOf(policy)
}

// DescribeDeferral returns the message for the author of a template for which a Lazy policy does
// not take effect yet, because the policy claimed an existing object or was changed. It returns
// false in all other passes. before is the template before the claim. bound is the binding of the
// template, or nil.
func DescribeDeferral(before *unstructured.Unstructured, bound binding.Object, policy Object, cause Trigger) (string, bool) {
	const note = "it takes effect at the next change of this object"
	title := DisplayName(policy)
	if earlierClaim, _ := ClaimedBy(before); earlierClaim != ClaimOf(policy) {
		return "Claimed by " + title + ", which is Lazy: " + note, true
	}
	if cause == PolicyChanged && bound != nil {
		return title + " changed and is Lazy: " + note, true
	}
	return "", false
}
