package v1alpha1

// RemovedWorkloadsAnnotation is the annotation of a WorkloadRebalancer with the workloads that were rebalanced
// and then removed from the spec, as a JSON list of ObjectReferences. The controller writes it to find out
// whether a workload was added to the spec again.
const RemovedWorkloadsAnnotation = "workloadrebalancer.karmada.io/removed-workloads"

// Event reasons.
const (
	// EventReasonRebalanceTriggered, of type Normal, on the WorkloadRebalancer: every listed workload has a
	// result. The message counts the results.
	EventReasonRebalanceTriggered = "RebalanceTriggered"
	// EventReasonRebalanceProblem, of type Warning, on the WorkloadRebalancer: listed workloads cannot be
	// rebalanced, or rebalancing has no effect on them. The message names them and the reasons.
	EventReasonRebalanceProblem = "RebalanceProblem"
	// EventReasonRebalanceFailed, of type Warning, on the WorkloadRebalancer: triggering the scheduling of
	// workloads failed and is retried. The message has the first error.
	EventReasonRebalanceFailed = "RebalanceFailed"
)
