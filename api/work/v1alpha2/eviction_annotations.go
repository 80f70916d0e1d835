package v1alpha2

// DepartedClustersAnnotation on a binding holds a JSON object with the clusters that the binding
// left because a user changed the placement or because an eviction ended. It maps the name of each
// cluster to the time of its departure, which explains the deletion of the copies there.
const DepartedClustersAnnotation = "work.karmada.io/departed-clusters"

// ClustersWithoutAPIAnnotation on a binding holds a JSON list with the names of the clusters that get
// no replicas by static weight only because they did not serve the kind of the template when the
// scheduler divided the replicas. The replicas are divided again when such a cluster serves the
// kind.
const ClustersWithoutAPIAnnotation = "work.karmada.io/clusters-without-api"

// ScheduledStateAnnotation on a binding holds a hash of the spec for which the scheduler selected
// the current clusters, and the time of this selection. As long as the spec matches, the binding counts as scheduled, so the
// condition Scheduled can be written together with the next status of the binding.
const ScheduledStateAnnotation = "work.karmada.io/scheduled-state"

// UnhealthySinceAnnotation on a binding holds a JSON object with the time since which the
// application is unhealthy, by cluster. Only bindings with an application failover have it,
// and only while the application is unhealthy in some cluster.
const UnhealthySinceAnnotation = "work.karmada.io/unhealthy-since"

// FailedInAnnotation on a binding holds a JSON object with the clusters from which the application
// was recently evicted because it was unhealthy, and the time of the eviction. For 30 minutes, or
// until the template changes, the scheduler chooses such a cluster only if no other cluster fits.
// Only bindings with an application failover have the annotation.
const FailedInAnnotation = "work.karmada.io/failed-in"

// EvictionHeld on a binding reports that the object stays in a cluster from which it is
// evicted, although the grace period is over.
const EvictionHeld = "EvictionHeld"

// Reasons of EvictionHeld.
const (
	// EvictionHeldReasonNotReplaced: no healthy copy in another cluster replaces the evicted copy.
	EvictionHeldReasonNotReplaced = "NotReplaced"

	// EvictionHeldReasonNotPurged: the evicted copy must be deleted first, and still exists.
	EvictionHeldReasonNotPurged = "NotPurged"
)

// Reasons of events about evictions, in addition to those that begin with
// EventReasonEvictWorkloadFromCluster.
const (
	// EventReasonEvictionStarted, of type Normal, on the binding and its template: the eviction
	// from a cluster has started.
	EventReasonEvictionStarted = "EvictionStarted"

	// EventReasonEvictionHeld, of type Warning, on the binding and its template: the condition
	// EvictionHeld became True.
	EventReasonEvictionHeld = "EvictionHeld"

	// EventReasonEvictionReturned, of type Normal, on the binding and its template: no other
	// cluster fits, and the object is scheduled to the cluster of the eviction again.
	EventReasonEvictionReturned = "EvictionReturned"
)
