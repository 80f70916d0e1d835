package v1alpha1

// Reasons of the events on objects that policies claim. Those that end in
// Succeed are of type Normal, those that end in Failed of type Warning.
const (
	EventReasonApplyPolicySucceed   = "ApplyPolicySucceed"
	EventReasonApplyPolicyFailed    = "ApplyPolicyFailed"
	EventReasonPreemptPolicySucceed = "PreemptPolicySucceed"
	EventReasonPreemptPolicyFailed  = "PreemptPolicyFailed"

	// EventReasonPolicyLost is of type Normal: no policy selects a propagated template
	// any more.
	EventReasonPolicyLost = "PolicyLost"

	// EventReasonPolicyDeferred is of type Normal: a Lazy policy waits for the next
	// change of the template.
	EventReasonPolicyDeferred = "PolicyDeferred"

	// EventReasonOverrideWithoutEffect is of type Warning: an overrider that was
	// applied changed no field.
	EventReasonOverrideWithoutEffect = "OverrideWithoutEffect"

	EventReasonApplyOverridePolicySucceed = "ApplyOverridePolicySucceed"
	EventReasonApplyOverridePolicyFailed  = "ApplyOverridePolicyFailed"
)

// Reasons of the events on a FederatedResourceQuota, in addition to those that
// it shares with bindings (SyncWork and AggregateStatus).
const (
	EventReasonCollectOverallStatusSucceed = "CollectOverallStatusSucceed"
	EventReasonCollectOverallStatusFailed  = "CollectOverallStatusFailed"
)
