package diagnose

// Reasons of links. Links also have reasons of conditions, of filters of the scheduler and of members.
const (
	// ReasonUnreadable means that the fact could not be read. The message contains the error.
	ReasonUnreadable = "Unreadable"
	// ReasonNotChecked means that there is no link, because earlier stages have not created the object.
	ReasonNotChecked = "NotChecked"

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
	// ReasonTemplateNotRecorded means that the members keep an earlier state of the template.
	ReasonTemplateNotRecorded = "TemplateNotRecorded"

	// Reasons of the schedule.
	ReasonScheduled           = "Scheduled"
	ReasonSchedulingSuspended = "SchedulingSuspended"
	ReasonNotScheduled        = "NotScheduled"
	ReasonSchedulerMissing    = "SchedulerMissing"
	ReasonNotManaged          = "NotManagedByScheduler"
	ReasonNoCluster           = "NoClusterChosen"
	ReasonScaledToZero        = "ScaledToZero"
	ReasonTaintTolerated      = "TaintTolerated"
	ReasonPlacedBeforeTaint   = "PlacedBeforeTaint"
	ReasonEvictionUnreported  = "EvictionUnreported"
	ReasonEvictionPending     = "EvictionPending"

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
