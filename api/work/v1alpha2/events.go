package v1alpha2

// Reasons of the events on bindings and on the objects of users. The comments have a fixed form,
// from which the reference of events is generated. This version records no event with a reason
// that has no comment.
const (
	// EventReasonSyncWorkSucceed, of type Normal, on the binding and its template: all Works of the
	// binding have been written. The event is recorded after an earlier failure, or each time with
	// --propagation-events=all.
	EventReasonSyncWorkSucceed = "SyncWorkSucceed"

	// EventReasonSyncWorkFailed, of type Warning, on the binding and its template: a Work could not
	// be written.
	EventReasonSyncWorkFailed = "SyncWorkFailed"

	// EventReasonCleanupWorkFailed, of type Warning, on the binding: a Work that is no longer
	// needed could not be deleted.
	EventReasonCleanupWorkFailed = "CleanupWorkFailed"

	// EventReasonAggregateStatusSucceed, of type Normal, on the binding and its template: the
	// statuses of the clusters have been aggregated. The event is recorded only with
	// --propagation-events=all.
	EventReasonAggregateStatusSucceed = "AggregateStatusSucceed"

	// EventReasonAggregateStatusFailed, of type Warning, on the binding and its template: the
	// statuses of the clusters could not be aggregated.
	EventReasonAggregateStatusFailed = "AggregateStatusFailed"

	// EventReasonScheduleBindingSucceed, of type Normal, on the template, and on the binding after
	// a failure: the scheduler has selected clusters, which the message lists with their replicas.
	EventReasonScheduleBindingSucceed = "ScheduleBindingSucceed"

	// EventReasonScheduleBindingFailed, of type Warning, on the binding and its template: the
	// scheduler could not select clusters for all replicas.
	EventReasonScheduleBindingFailed = "ScheduleBindingFailed"

	// EventReasonDescheduleBindingSucceed, of type Normal, on the binding and its template: the
	// descheduler removed unschedulable replicas from clusters.
	EventReasonDescheduleBindingSucceed = "DescheduleBindingSucceed"

	// EventReasonDescheduleBindingFailed, of type Warning, on the binding and its template: the
	// descheduler could not remove unschedulable replicas from clusters.
	EventReasonDescheduleBindingFailed = "DescheduleBindingFailed"

	// EventReasonClusterRemoved, of type Normal or Warning, on the binding and its template: a
	// Cluster that is being deleted was removed from the binding. If it could not be removed, the event
	// has the type Warning and is recorded only on the binding.
	EventReasonClusterRemoved = "ClusterRemoved"

	// EventReasonEvictWorkloadFromClusterSucceed, of type Normal, on the binding and its template:
	// an eviction from a cluster has ended.
	EventReasonEvictWorkloadFromClusterSucceed = "EvictWorkloadFromClusterSucceed"

	// EventReasonEvictWorkloadFromClusterFailed, of type Warning, on the binding and its template:
	// an eviction from a cluster could not be started.
	EventReasonEvictWorkloadFromClusterFailed = "EvictWorkloadFromClusterFailed"

	// EventReasonGetReplicasSucceed, of type Normal, on the template: the replicas of the template
	// have been determined. The event is recorded only with --propagation-events=all.
	EventReasonGetReplicasSucceed = "GetReplicasSucceed"

	// EventReasonGetReplicasFailed, of type Warning, on the template: the replicas of the template
	// could not be determined.
	EventReasonGetReplicasFailed    = "GetReplicasFailed"
	EventReasonGetComponentsSucceed = "GetComponentsSucceed"

	// EventReasonGetComponentsFailed, of type Warning, on the template: the components of the
	// template could not be determined.
	EventReasonGetComponentsFailed = "GetComponentsFailed"

	// EventReasonGetDependenciesSucceed, of type Normal, on the template: the dependencies of the
	// template changed. With --propagation-events=all, the event is also recorded if they did not change.
	EventReasonGetDependenciesSucceed = "GetDependenciesSucceed"

	// EventReasonGetDependenciesFailed, of type Warning, on the template: the dependencies of the
	// template could not be determined.
	EventReasonGetDependenciesFailed = "GetDependenciesFailed"

	// EventReasonSyncScheduleResultToDependenciesSucceed, of type Normal, on the binding: the
	// dependencies are scheduled to the clusters of the object.
	EventReasonSyncScheduleResultToDependenciesSucceed = "SyncScheduleResultToDependenciesSucceed"

	// EventReasonSyncScheduleResultToDependenciesFailed, of type Warning, on the binding: a
	// dependency could not be scheduled to the clusters of the object.
	EventReasonSyncScheduleResultToDependenciesFailed = "SyncScheduleResultToDependenciesFailed"

	// EventReasonWorkloadUnhealthy, of type Warning, on the binding and its template: the
	// workload is unhealthy in a cluster, for the reason in the message.
	EventReasonWorkloadUnhealthy = "WorkloadUnhealthy"

	// EventReasonPropagationSuspended, of type Normal, on the template: dispatching or scheduling
	// of the binding is suspended.
	EventReasonPropagationSuspended = "PropagationSuspended"

	// EventReasonPropagationResumed, of type Normal, on the template: dispatching or scheduling of
	// the binding is no longer suspended.
	EventReasonPropagationResumed = "PropagationResumed"

	// EventReasonDependencyPolicyConflict, of type Warning, on the binding of a dependency: the
	// objects that need the dependency require different settings for it.
	EventReasonDependencyPolicyConflict = "DependencyPolicyConflict"
)
