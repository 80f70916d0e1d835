package detector

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
)

// reportSuspension records on the template that its binding became suspended, or
// goes on. Policies and users suspend bindings, so the binding shows both.
func (d *detector) reportSuspension(before, after binding.Object) {
	news, changed := policy.DescribeSuspension(before, after)
	if !changed || after.GetDeletionTimestamp() != nil {
		return
	}
	reason := workv1alpha2.EventReasonPropagationResumed
	if news.Suspended {
		reason = workv1alpha2.EventReasonPropagationSuspended
	}
	d.events.Decided(binding.Template(after), reason, "%s", news.Message)
}

// reportDeferral records on a template what a Lazy policy leaves undone: the claim
// of an object that was there before, or a change of the policy.
func (d *detector) reportDeferral(asked request, before, claimed *unstructured.Unstructured, p policy.Object, bound binding.Object) {
	const until = "it takes effect at the next change of this object"
	title := policy.Title(p)
	if earlier, _ := policy.ClaimedBy(before); earlier != policy.ClaimOf(p) {
		d.events.Decided(claimed, policyv1alpha1.EventReasonPolicyDeferred, "Claimed by %s, which is Lazy: %s", title, until)
		return
	}
	if asked.cause == policy.PolicyChanged && bound != nil {
		d.events.Decided(claimed, policyv1alpha1.EventReasonPolicyDeferred, "%s changed and is Lazy: %s", title, until)
	}
}
