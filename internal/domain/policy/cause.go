package policy

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/binding"
)

// HasRelevantPolicyChange reports whether the policy's update can affect templates: its spec or its
// permanent ID has changed, or it is being deleted.
func HasRelevantPolicyChange(before, after Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		isTerminating(before) != isTerminating(after) ||
		ClaimOf(before) != ClaimOf(after)
}

// CauseOfUpdate returns the cause of a template's update. It is PolicyChanged if a Lazy policy takes the
// template over from another policy, because such an update changes only Karmada's labels and
// annotations. get returns the named policy, or nil.
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

// ShouldRecordApply reports whether to record the write of a binding as an event on the template: the
// policy was applied for the first time, or it has changed. A change of the template itself is not
// recorded, because its author expects the write. before is the binding before the write, or nil.
func ShouldRecordApply(before binding.Object, policy Object, cause Trigger) bool {
	if before == nil || cause == PolicyChanged {
		return true
	}
	claim, _ := ClaimedBy(before)
	return claim != ClaimOf(policy)
}

// DescribeDeferral returns a message for the template's author if a Lazy policy does not take effect
// yet, because it claimed an existing object or has changed. Otherwise it returns false. before is the
// template before the claim, and bound its binding, or nil.
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
