package v1alpha2

// UnhealthySinceAnnotation on a binding holds, as a JSON object, since when the
// application has been unhealthy, by cluster. It is there only for bindings with an
// application failover, and only while the application is unhealthy somewhere.
const UnhealthySinceAnnotation = "work.karmada.io/unhealthy-since"

// FailedInAnnotation on a binding holds, as a JSON object, which clusters the
// application has left lately because it was unhealthy there, and when: for half an
// hour, or until its template changes, it goes there only if no others take it. It is
// there only for bindings with an application failover.
const FailedInAnnotation = "work.karmada.io/failed-in"

// EvictionHeld on a binding says that the object stays in a cluster that it is to
// leave, although the time for that is over.
const EvictionHeld = "EvictionHeld"

// Reasons of EvictionHeld.
const (
	// EvictionHeldReasonNotReplaced: nothing healthy stands in for the copy there.
	EvictionHeldReasonNotReplaced = "NotReplaced"

	// EvictionHeldReasonNotPurged: the copy there has to be gone first, and is not.
	EvictionHeldReasonNotPurged = "NotPurged"
)

// Reasons of events about evictions beside those of EvictWorkloadFromCluster.
const (
	// EventReasonEvictionStarted, of type Normal: the object begins to leave a cluster.
	EventReasonEvictionStarted = "EvictionStarted"

	// EventReasonEvictionHeld, of type Warning, goes with the condition of that name.
	EventReasonEvictionHeld = "EvictionHeld"

	// EventReasonEvictionReturned, of type Normal: no other cluster takes the object,
	// and the one that it was to leave has it again.
	EventReasonEvictionReturned = "EvictionReturned"
)
