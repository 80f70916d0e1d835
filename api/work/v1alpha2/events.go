package v1alpha2

// Reasons of the events on bindings and on the objects of users. The comments have a fixed form,
// from which the reference of events is generated. This version records no event with a reason
// that has no comment.
const (
	// EventReasonSyncWorkSucceed, of type Normal, on the binding and its template: all Works of the
	// binding are written: after an earlier failure, or each time with --propagation-events=all.
	EventReasonSyncWorkSucceed = "SyncWorkSucceed"

	// EventReasonSyncWorkFailed, of type Warning, on the binding and its template: a Work could not
	// be written.
	EventReasonSyncWorkFailed = "SyncWorkFailed"

	// EventReasonCleanupWorkFailed, of type Warning, on the binding: a Work that is not needed any
	// more could not be deleted.
	EventReasonCleanupWorkFailed = "CleanupWorkFailed"

	// EventReasonAggregateStatusSucceed, of type Normal, on the binding and its template: the
	// status of the clusters is aggregated; only with --propagation-events=all.
	EventReasonAggregateStatusSucceed = "AggregateStatusSucceed"

	// EventReasonAggregateStatusFailed, of type Warning, on the binding and its template: the
	// status of the clusters could not be aggregated.
	EventReasonAggregateStatusFailed = "AggregateStatusFailed"

	// EventReasonScheduleBindingSucceed, of type Normal, on the template, and on the binding after
	// a failure: the selected clusters and their replicas.
	EventReasonScheduleBindingSucceed = "ScheduleBindingSucceed"

	// EventReasonScheduleBindingFailed, of type Warning, on the binding and its template: no
	// cluster could be selected, or not for all replicas.
	EventReasonScheduleBindingFailed = "ScheduleBindingFailed"

	// EventReasonDescheduleBindingSucceed, of type Normal, on the binding and its template: the
	// descheduler took unschedulable replicas away from clusters.
	EventReasonDescheduleBindingSucceed = "DescheduleBindingSucceed"

	// EventReasonDescheduleBindingFailed, of type Warning, on the binding and its template: the
	// descheduler could not take unschedulable replicas away from clusters.
	EventReasonDescheduleBindingFailed = "DescheduleBindingFailed"

	// EventReasonClusterRemoved, of type Normal or Warning, on the binding and its template: a
	// Cluster is being deleted and was removed from the binding, or (Warning, on the binding) could
	// not be removed from it.
	EventReasonClusterRemoved = "ClusterRemoved"

	// EventReasonEvictWorkloadFromClusterSucceed, of type Normal, on the binding and its template:
	// an eviction from a cluster has ended.
	EventReasonEvictWorkloadFromClusterSucceed = "EvictWorkloadFromClusterSucceed"

	// EventReasonEvictWorkloadFromClusterFailed, of type Warning, on the binding and its template:
	// an eviction from a cluster could not be started.
	EventReasonEvictWorkloadFromClusterFailed = "EvictWorkloadFromClusterFailed"

	// EventReasonGetReplicasSucceed, of type Normal, on the template: the replicas of the template
	// are known; only with --propagation-events=all.
	EventReasonGetReplicasSucceed = "GetReplicasSucceed"

	// EventReasonGetReplicasFailed, of type Warning, on the template: the replicas of the template
	// could not be read.
	EventReasonGetReplicasFailed    = "GetReplicasFailed"
	EventReasonGetComponentsSucceed = "GetComponentsSucceed"

	// EventReasonGetComponentsFailed, of type Warning, on the template: the components of the
	// template could not be read.
	EventReasonGetComponentsFailed = "GetComponentsFailed"

	// EventReasonGetDependenciesSucceed, of type Normal, on the template: the dependencies of the
	// template changed, or are known with --propagation-events=all.
	EventReasonGetDependenciesSucceed = "GetDependenciesSucceed"

	// EventReasonGetDependenciesFailed, of type Warning, on the template: the dependencies of the
	// template could not be read.
	EventReasonGetDependenciesFailed = "GetDependenciesFailed"

	// EventReasonSyncScheduleResultToDependenciesSucceed, of type Normal, on the binding: the
	// dependencies follow the object to its clusters.
	EventReasonSyncScheduleResultToDependenciesSucceed = "SyncScheduleResultToDependenciesSucceed"

	// EventReasonSyncScheduleResultToDependenciesFailed, of type Warning, on the binding: a
	// dependency does not follow the object to its clusters.
	EventReasonSyncScheduleResultToDependenciesFailed = "SyncScheduleResultToDependenciesFailed"

	// EventReasonWorkloadUnhealthy, of type Warning, on the binding and its template: the reason
	// why the workload is unhealthy in a cluster.
	EventReasonWorkloadUnhealthy = "WorkloadUnhealthy"
	// EventReasonPropagationSuspended, of type Normal, on the template: dispatching or scheduling
	// of the binding is suspended.
	EventReasonPropagationSuspended = "PropagationSuspended"

	// EventReasonPropagationResumed, of type Normal, on the template: the suspension of the binding
	// ended.
	EventReasonPropagationResumed = "PropagationResumed"

	// EventReasonDependencyPolicyConflict, of type Warning, on the binding of a dependency: the
	// objects that need the dependency have different settings for it.
	EventReasonDependencyPolicyConflict = "DependencyPolicyConflict"
)
