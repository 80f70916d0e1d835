package v1alpha1

// Reasons of the events on objects that policies claim. The comments have a fixed form, from
// which the reference of events is generated.
const (
	// EventReasonApplyPolicySucceed, of type Normal, on the template: a policy claims the template.
	EventReasonApplyPolicySucceed = "ApplyPolicySucceed"

	// EventReasonApplyPolicyFailed, of type Warning, on the template: no policy can claim the
	// template, or the policy cannot be applied.
	EventReasonApplyPolicyFailed = "ApplyPolicyFailed"

	// EventReasonPreemptPolicySucceed, of type Normal, on the template: a policy took the template
	// over from a policy of lower priority.
	EventReasonPreemptPolicySucceed = "PreemptPolicySucceed"

	// EventReasonPreemptPolicyFailed, of type Warning, on the template: a policy could not take the
	// template over.
	EventReasonPreemptPolicyFailed = "PreemptPolicyFailed"

	// EventReasonPolicyLost, of type Normal, on the template: no policy selects a propagated
	// template any more; its copies stay.
	EventReasonPolicyLost = "PolicyLost"

	// EventReasonPolicyDeferred, of type Normal, on the template: a Lazy policy waits for the next
	// change of the template.
	EventReasonPolicyDeferred = "PolicyDeferred"

	// EventReasonOverrideWithoutEffect, of type Warning, on the template: an overrider that was
	// applied changed no field.
	EventReasonOverrideWithoutEffect = "OverrideWithoutEffect"

	// EventReasonApplyOverridePolicySucceed, of type Normal, on the template: override policies
	// were applied for some clusters.
	EventReasonApplyOverridePolicySucceed = "ApplyOverridePolicySucceed"

	// EventReasonApplyOverridePolicyFailed, of type Warning, on the template, also a Namespace: an
	// override policy does not fit the object.
	EventReasonApplyOverridePolicyFailed = "ApplyOverridePolicyFailed"
)

// Reasons of the events on a FederatedResourceQuota, in addition to those that
// it shares with bindings (SyncWork and AggregateStatus).
const (
	// EventReasonCollectOverallStatusSucceed, of type Normal, on the FederatedResourceQuota: the usage of
	// the namespace has been computed and written. The event is recorded only with
	// --propagation-events=all.
	EventReasonCollectOverallStatusSucceed = "CollectOverallStatusSucceed"

	// EventReasonCollectOverallStatusFailed, of type Warning, on the FederatedResourceQuota: the usage of
	// the namespace could not be written.
	EventReasonCollectOverallStatusFailed = "CollectOverallStatusFailed"
)
