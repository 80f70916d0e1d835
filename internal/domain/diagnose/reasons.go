package diagnose

// Reasons of links that are not the reasons of a condition, of a filter of the scheduler or of a
// member.
const (
	// ReasonUnreadable: the fact could not be read. The message has the error.
	ReasonUnreadable = "Unreadable"

	// Reasons of the template.
	ReasonFound           = "Found"
	ReasonNotFound        = "NotFound"
	ReasonTerminating     = "Terminating"
	ReasonNeverPropagated = "NeverPropagated"

	// Reasons of the policy.
	ReasonClaimed              = "Claimed"
	ReasonClaimedByOther       = "ClaimedByOtherPolicy"
	ReasonAttached             = "AttachedToDependents"
	ReasonNoPolicyMatches      = "NoPolicyMatches"
	ReasonPolicyGone           = "PolicyGone"
	ReasonPolicyTerminating    = "PolicyTerminating"
	ReasonNoPermanentID        = "NoPermanentID"
	ReasonLazyPolicyWaits      = "LazyPolicyWaits"
	ReasonNotClaimed           = "NotClaimed"
	ReasonOverridesMissing     = "DependentOverridesMissing"
	ReasonManagedByController  = "ManagedByController"
	ReasonCreatedByDistributor = "ClaimedByDistributor"

	// Reasons of the binding.
	ReasonBound         = "Bound"
	ReasonNoBinding     = "NoBinding"
	ReasonNameCollision = "NameCollision"

	// Reasons of the schedule.
	ReasonScheduled            = "Scheduled"
	ReasonSchedulingSuspended  = "SchedulingSuspended"
	ReasonNotScheduled         = "NotScheduled"
	ReasonSchedulerMissing     = "SchedulerMissing"
	ReasonNotManaged           = "NotManagedByScheduler"
	ReasonEstimatorUnavailable = "EstimatorUnavailable"
	ReasonNoCluster            = "NoClusterChosen"
	ReasonScaledToZero         = "ScaledToZero"
	ReasonTaintTolerated       = "TaintTolerated"
	ReasonPlacedBeforeTaint    = "PlacedBeforeTaint"
	ReasonEvictionUnreported   = "EvictionUnreported"
	ReasonEvictionPending      = "EvictionPending"

	// Reasons of override policies.
	ReasonOverrideApplied       = "OverrideApplied"
	ReasonOverrideWithoutEffect = "OverrideWithoutEffect"
	ReasonOverrideElsewhere     = "OverrideForOtherClusters"
	ReasonOverrideNearlySelects = "OverrideNearlySelects"

	// Reasons of Works.
	ReasonApplied             = "Applied"
	ReasonClusterGone         = "ClusterNotFound"
	ReasonClusterNotReady     = "ClusterNotReady"
	ReasonRenderFailed        = "RenderFailed"
	ReasonWorkMissing         = "WorkMissing"
	ReasonWorkOutdated        = "WorkOutdated"
	ReasonDispatchSuspended   = "DispatchingSuspended"
	ReasonNotApplied          = "NotApplied"
	ReasonRemainsElsewhere    = "NoLongerChosen"
	ReasonConflict            = "Conflict"
	ReasonNamespaceMissing    = "NamespaceMissing"
	ReasonNamespaceTerminates = "NamespaceTerminating"
	ReasonQuotaExceeded       = "QuotaExceeded"
	ReasonAdmissionDenied     = "AdmissionDenied"
	ReasonAPINotServed        = "APINotServed"
	ReasonInvalid             = "Invalid"

	// Reasons of members and statuses.
	ReasonExists            = "Exists"
	ReasonObjectMissing     = "ObjectMissing"
	ReasonHealthy           = "Healthy"
	ReasonUnhealthy         = "Unhealthy"
	ReasonStatusNotReported = "StatusNotReported"
	ReasonStatusOutdated    = "StatusOutdated"
	ReasonNoStatus          = "NoStatus"
)
