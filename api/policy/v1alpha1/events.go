package v1alpha1

// Reasons of the events on objects that policies claim. Those that end in
// Succeed are of type Normal, those that end in Failed of type Warning.
const (
	EventReasonApplyPolicySucceed   = "ApplyPolicySucceed"
	EventReasonApplyPolicyFailed    = "ApplyPolicyFailed"
	EventReasonPreemptPolicySucceed = "PreemptPolicySucceed"
	EventReasonPreemptPolicyFailed  = "PreemptPolicyFailed"

	EventReasonApplyOverridePolicySucceed = "ApplyOverridePolicySucceed"
	EventReasonApplyOverridePolicyFailed  = "ApplyOverridePolicyFailed"
)

// Reasons of the events on a FederatedResourceQuota, in addition to those that
// it shares with bindings (SyncWork and AggregateStatus).
const (
	EventReasonCollectOverallStatusSucceed = "CollectOverallStatusSucceed"
	EventReasonCollectOverallStatusFailed  = "CollectOverallStatusFailed"
)
