package detector

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
)

// recordSuspensionEvent records on the template that its binding was suspended or resumed.
// Both policies and users suspend bindings, and the binding shows both.
func (d *detector) recordSuspensionEvent(before, after binding.Object) {
	suspension, changed := policy.DescribeSuspension(before, after)
	if !changed || after.GetDeletionTimestamp() != nil {
		return
	}
	reason := workv1alpha2.EventReasonPropagationResumed
	if suspension.Suspended {
		reason = workv1alpha2.EventReasonPropagationSuspended
	}
	d.events.RecordDecision(binding.TemplateReference(after), reason, "%s", suspension.Message)
}

// recordDeferralEvent records on a template that a Lazy policy does not take effect yet: it
// claimed an existing object, or the policy changed.
func (d *detector) recordDeferralEvent(request templateRequest, before, claimed *unstructured.Unstructured, p policy.Object, bound binding.Object) {
	const note = "it takes effect at the next change of this object"
	title := policy.DisplayName(p)
	if earlierClaim, _ := policy.ClaimedBy(before); earlierClaim != policy.ClaimOf(p) {
		d.events.RecordDecision(claimed, policyv1alpha1.EventReasonPolicyDeferred, "Claimed by %s, which is Lazy: %s", title, note)
		return
	}
	if request.cause == policy.PolicyChanged && bound != nil {
		d.events.RecordDecision(claimed, policyv1alpha1.EventReasonPolicyDeferred, "%s changed and is Lazy: %s", title, note)
	}
}
