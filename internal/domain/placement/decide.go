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

// Action is the action that Decide returns for a binding.
type Action string

// Values of Action.
const (
	// ActionNone means that the current targets are up to date and recorded in the status.
	ActionNone Action = "None"
	// ActionRefuse means that the binding is being deleted and is no longer scheduled.
	ActionRefuse Action = "Refuse"
	// ActionObserve means that the current targets are up to date, but the status is not.
	ActionObserve Action = "Observe"
	// ActionSchedule means that the binding must be scheduled.
	ActionSchedule Action = "Schedule"
)

// ScheduleType is the cause for which a binding is scheduled. It is used as a metric label.
type ScheduleType string

// Values of ScheduleType.
const (
	// ReconcileSchedule means that the placement or a cluster changed.
	ReconcileSchedule ScheduleType = "ReconcileSchedule"
	// ScaleSchedule means that the number of replicas changed.
	ScaleSchedule ScheduleType = "ScaleSchedule"
)

// Decision is the action for a binding and the reason for it.
type Decision struct {
	Action Action
	// Type is set only if the action is ActionSchedule.
	Type ScheduleType
	// Reason describes the rule that applied. It is logged.
	Reason string
}

// ErrNoPlacement is returned for a binding whose spec.placement is empty.
var ErrNoPlacement = errors.New("the binding has no placement")

// Features holds the feature gates and flags on which placement depends. The zero value disables all
// of them.
type Features struct {
	// MultiplePodTemplates reports whether the feature gate MultiplePodTemplatesScheduling is
	// enabled.
	MultiplePodTemplates bool
	// WorkloadAffinity reports whether the feature gate WorkloadAffinity is enabled.
	WorkloadAffinity bool
	// EmptyWorkload is the flag --enable-empty-workload-propagation: selected clusters that get no
	// replicas become targets with 0 replicas.
	EmptyWorkload bool
}

// ClusterLookup returns the cluster with the given name, or nil if it is not in the cache.
type ClusterLookup func(name string) *clusterv1alpha1.Cluster

// Decide returns whether the binding must be scheduled. The first rule of the switch below that
// applies decides.
//
// Changed labels or taints of a cluster are no reason to schedule a divided workload again. Nor is a
// target cluster that is not found, because the cache may be stale.
func Decide(
	meta metav1.Object,
	spec *workv1alpha2.ResourceBindingSpec,
	status *workv1alpha2.ResourceBindingStatus,
	clusters ClusterLookup,
	features Features,
) (Decision, error) {
	if meta.GetDeletionTimestamp() != nil {
		return Decision{Action: ActionRefuse, Reason: "the binding is being deleted"}, nil
	}
	if spec.Placement == nil {
		return Decision{}, ErrNoPlacement
	}
	applied := meta.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
	activeGroup := status.SchedulerObservedAffinityName
	switch {
	case PlacementChanged(spec.Placement, applied, activeGroup):
		return scheduleDecision(ReconcileSchedule, "the placement changed"), nil
	case ReplicasChanged(spec, features):
		return scheduleDecision(ScaleSchedule, "the replicas changed"), nil
	case RescheduleRequested(spec, withLastScheduledTime(meta, status)):
		return scheduleDecision(ReconcileSchedule, "a reschedule was requested"), nil
	case IsSameEverywhere(spec):
		return scheduleDecision(ReconcileSchedule, "every fitting cluster gets the same"), nil
	case slices.ContainsFunc(spec.Clusters, clusters.isTerminating):
		return scheduleDecision(ReconcileSchedule, "a target cluster is being removed"), nil
	case slices.ContainsFunc(ClustersWithoutAPI(meta), func(name string) bool { return canTakeShare(clusters(name), meta, spec, status) }):
		return scheduleDecision(ReconcileSchedule, "a cluster that was left out serves the kind now"), nil
	case meta.GetGeneration() != status.SchedulerObservedGeneration && len(spec.Placement.ClusterAffinities) > 0 && activeGroup == "":
		// The scheduler writes the clusters first and then the affinity group. It stopped between
		// these writes, so it is unknown to which group the clusters belong.
		return scheduleDecision(ReconcileSchedule, "the affinity group in use is not recorded"), nil
	case meta.GetGeneration() != status.SchedulerObservedGeneration:
		return Decision{Action: ActionObserve, Reason: "the result holds for the new generation"}, nil
	default:
		return Decision{Action: ActionNone, Reason: "nothing changed"}, nil
	}
}

func scheduleDecision(kind ScheduleType, why string) Decision {
	return Decision{Action: ActionSchedule, Type: kind, Reason: why}
}

// RescheduleRequested reports whether a user requested a reschedule after the last scheduling. The
// workload is then placed regardless of its current targets: the first affinity group is tried first,
// and a division by capacity ignores the current shares.
func RescheduleRequested(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus) bool {
	return spec.RescheduleTriggeredAt != nil && status.LastScheduledTime != nil &&
		spec.RescheduleTriggeredAt.After(status.LastScheduledTime.Time)
}

// withLastScheduledTime returns the status with binding.LastScheduledTime. Otherwise a request that arrives
// before the status shows the first scheduling would have no effect.
func withLastScheduledTime(meta metav1.Object, status *workv1alpha2.ResourceBindingStatus) *workv1alpha2.ResourceBindingStatus {
	last := binding.LastScheduledTime(meta, status)
	if last == status.LastScheduledTime {
		return status
	}
	complete := *status
	complete.LastScheduledTime = last
	return &complete
}

// IsSameEverywhere reports whether each cluster gets the same copy, because the binding's template is no
// workload or its replicas are duplicated. Such a binding is scheduled in each pass.
func IsSameEverywhere(spec *workv1alpha2.ResourceBindingSpec) bool {
	return !binding.IsWorkload(spec) || isDuplicated(spec.Placement)
}

// isDuplicated reports whether every cluster gets all replicas. A placement without a strategy
// counts as duplicated.
func isDuplicated(placement *policyv1alpha1.Placement) bool {
	return placement.ReplicaScheduling == nil ||
		placement.ReplicaScheduling.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDuplicated
}
