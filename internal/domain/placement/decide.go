package placement

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// Action is what a binding at the head of the queue needs.
type Action string

// Values of Action.
const (
	// ActionNone: the result is right and recorded.
	ActionNone Action = "None"
	// ActionRefuse: the binding is being deleted; it is not placed any more.
	ActionRefuse Action = "Refuse"
	// ActionObserve: the result is right, but status.schedulerObservedGeneration
	// does not say so yet.
	ActionObserve Action = "Observe"
	// ActionSchedule: choose clusters.
	ActionSchedule Action = "Schedule"
)

// ScheduleType tells, as a metric label, why a binding is scheduled.
type ScheduleType string

// Values of ScheduleType.
const (
	// ReconcileSchedule: what the user asks for, or a cluster, is different.
	ReconcileSchedule ScheduleType = "ReconcileSchedule"
	// ScaleSchedule: the number of replicas is different.
	ScaleSchedule ScheduleType = "ScaleSchedule"
)

// Decision is what to do with a binding and why.
type Decision struct {
	Action Action
	// Type is set with ActionSchedule only.
	Type ScheduleType
	// Why is the rule that decided, for logs.
	Why string
}

// ErrNoPlacement is the answer to a binding that does not say where it may go.
var ErrNoPlacement = errors.New("the binding has no placement")

// Features are the feature gates and flags that placement depends on. The zero
// value has all of them off.
type Features struct {
	// MultiplePodTemplates is the gate MultiplePodTemplatesScheduling.
	MultiplePodTemplates bool
	// WorkloadAffinity is the gate of that name.
	WorkloadAffinity bool
	// EmptyWorkload keeps selected clusters that got no replicas as targets with
	// 0 replicas (flag --enable-empty-workload-propagation).
	EmptyWorkload bool
}

// Lookup finds a cluster by name; nil if it is not known.
type Lookup func(name string) *clusterv1alpha1.Cluster

// Decide looks whether a binding has to be scheduled. The rules are asked in the
// order of the table in this function; the first that applies decides.
//
// A divided workload is sticky: when none of the first rules applies, a change of
// the labels or taints of a cluster does not move it. A target cluster that is
// not known is no reason to move anything: the cache may be behind.
func Decide(
	meta metav1.Object,
	spec *workv1alpha2.ResourceBindingSpec,
	status *workv1alpha2.ResourceBindingStatus,
	clusters Lookup,
	features Features,
) (Decision, error) {
	if meta.GetDeletionTimestamp() != nil {
		return Decision{Action: ActionRefuse, Why: "the binding is being deleted"}, nil
	}
	if spec.Placement == nil {
		return Decision{}, ErrNoPlacement
	}
	applied := meta.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
	observing := status.SchedulerObservedAffinityName
	switch {
	case PlacementChanged(spec.Placement, applied, observing):
		return schedule(ReconcileSchedule, "the placement changed"), nil
	case ReplicasChanged(spec, features):
		return schedule(ScaleSchedule, "the replicas changed"), nil
	case RescheduleRequested(spec, status):
		return schedule(ReconcileSchedule, "a reschedule was requested"), nil
	case !binding.IsWorkload(spec) || duplicated(spec.Placement):
		return schedule(ReconcileSchedule, "every fitting cluster gets the same"), nil
	case slices.ContainsFunc(spec.Clusters, clusters.leaving):
		return schedule(ReconcileSchedule, "a target cluster is being removed"), nil
	case meta.GetGeneration() != status.SchedulerObservedGeneration:
		return Decision{Action: ActionObserve, Why: "the result holds for the new generation"}, nil
	default:
		return Decision{Action: ActionNone, Why: "nothing changed"}, nil
	}
}

func schedule(kind ScheduleType, why string) Decision {
	return Decision{Action: ActionSchedule, Type: kind, Why: why}
}

// RescheduleRequested reports whether a rebalance was asked for after the last
// scheduling. Then the workload is placed afresh: the first affinity group gets
// another chance, and a division by capacity starts from nothing.
func RescheduleRequested(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus) bool {
	return spec.RescheduleTriggeredAt != nil && status.LastScheduledTime != nil &&
		spec.RescheduleTriggeredAt.After(status.LastScheduledTime.Time)
}

// duplicated reports whether every cluster gets all replicas. That is so without
// a strategy, too.
func duplicated(placement *policyv1alpha1.Placement) bool {
	return placement.ReplicaScheduling == nil ||
		placement.ReplicaScheduling.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDuplicated
}
