package v1alpha2

// Reasons of the events on bindings and on the objects of users. Those that end
// in Succeed are of type Normal, the others of type Warning.
const (
	EventReasonSyncWorkSucceed   = "SyncWorkSucceed"
	EventReasonSyncWorkFailed    = "SyncWorkFailed"
	EventReasonCleanupWorkFailed = "CleanupWorkFailed"

	EventReasonAggregateStatusSucceed = "AggregateStatusSucceed"
	EventReasonAggregateStatusFailed  = "AggregateStatusFailed"

	EventReasonScheduleBindingSucceed   = "ScheduleBindingSucceed"
	EventReasonScheduleBindingFailed    = "ScheduleBindingFailed"
	EventReasonDescheduleBindingSucceed = "DescheduleBindingSucceed"
	EventReasonDescheduleBindingFailed  = "DescheduleBindingFailed"

	EventReasonClusterRemoved = "ClusterRemoved"

	EventReasonEvictWorkloadFromClusterSucceed = "EvictWorkloadFromClusterSucceed"
	EventReasonEvictWorkloadFromClusterFailed  = "EvictWorkloadFromClusterFailed"

	EventReasonGetReplicasSucceed     = "GetReplicasSucceed"
	EventReasonGetReplicasFailed      = "GetReplicasFailed"
	EventReasonGetComponentsSucceed   = "GetComponentsSucceed"
	EventReasonGetComponentsFailed    = "GetComponentsFailed"
	EventReasonGetDependenciesSucceed = "GetDependenciesSucceed"
	EventReasonGetDependenciesFailed  = "GetDependenciesFailed"

	EventReasonSyncScheduleResultToDependenciesSucceed = "SyncScheduleResultToDependenciesSucceed"
	EventReasonSyncScheduleResultToDependenciesFailed  = "SyncScheduleResultToDependenciesFailed"

	// EventReasonWorkloadUnhealthy, on a binding and its template, of type Warning,
	// contains the reason why the workload is unhealthy in a cluster.
	EventReasonWorkloadUnhealthy = "WorkloadUnhealthy"
	// EventReasonPropagationSuspended and EventReasonPropagationResumed are of type
	// Normal: the propagation of changes of a template is suspended or resumed.
	EventReasonPropagationSuspended = "PropagationSuspended"
	EventReasonPropagationResumed   = "PropagationResumed"

	EventReasonDependencyPolicyConflict = "DependencyPolicyConflict"
)
