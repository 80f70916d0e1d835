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
	// ActionNone means that the present result is up to date and recorded, so nothing needs to be
	// done.
	ActionNone Action = "None"
	// ActionRefuse means that the binding is being deleted and is no longer scheduled.
	ActionRefuse Action = "Refuse"
	// ActionObserve means that the present result is up to date, but
	// status.schedulerObservedGeneration is not.
	ActionObserve Action = "Observe"
	// ActionSchedule means that the binding must be scheduled.
	ActionSchedule Action = "Schedule"
)

// ScheduleType is the cause of a scheduling. It is used as a metric label.
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
	// Reason is the name of the rule that applied. It is logged.
	Reason string
}

// ErrNoPlacement is returned for a binding whose spec.placement is empty.
var ErrNoPlacement = errors.New("the binding has no placement")

// Features are the feature gates and flags on which placement depends. The zero value disables all
// features.
type Features struct {
	// MultiplePodTemplates reports whether the feature gate MultiplePodTemplatesScheduling is
	// enabled.
	MultiplePodTemplates bool
	// WorkloadAffinity reports whether the feature gate WorkloadAffinity is enabled.
	WorkloadAffinity bool
	// EmptyWorkload reports whether selected clusters that got no replicas stay targets with 0
	// replicas (flag --enable-empty-workload-propagation).
	EmptyWorkload bool
}

// ClusterLookup returns a cluster by name, or nil if the cache has no such cluster.
type ClusterLookup func(name string) *clusterv1alpha1.Cluster

// Decide returns whether a binding has to be scheduled. It checks the rules in the order of the
// switch below, and uses the first rule that applies.
//
// A change of the labels or taints of a cluster is no reason to schedule a divided workload again.
// A target cluster that is not found is no reason either, because the cache may be behind.
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
	case RescheduleRequested(spec, status):
		return scheduleDecision(ReconcileSchedule, "a reschedule was requested"), nil
	case !binding.IsWorkload(spec) || isDuplicated(spec.Placement):
		return scheduleDecision(ReconcileSchedule, "every fitting cluster gets the same"), nil
	case slices.ContainsFunc(spec.Clusters, clusters.isTerminating):
		return scheduleDecision(ReconcileSchedule, "a target cluster is being removed"), nil
	case slices.ContainsFunc(ClustersWithoutAPI(meta), func(name string) bool { return canTakeShare(clusters(name), meta, spec, status) }):
		return scheduleDecision(ReconcileSchedule, "a cluster that was left out serves the kind now"), nil
	case meta.GetGeneration() != status.SchedulerObservedGeneration && len(spec.Placement.ClusterAffinities) > 0 && activeGroup == "":
		// A scheduler stores the clusters with one write and the affinity group with the next write.
		// It ended between these writes, so the group of the clusters is unknown.
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

// RescheduleRequested reports whether a rebalance was requested after the last scheduling. The
// workload is then placed without regard to its present targets: the first affinity group is tried
// again, and a division by capacity ignores the present shares.
func RescheduleRequested(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus) bool {
	return spec.RescheduleTriggeredAt != nil && status.LastScheduledTime != nil &&
		spec.RescheduleTriggeredAt.After(status.LastScheduledTime.Time)
}

// isDuplicated reports whether every cluster gets all replicas. A placement without a strategy
// counts as duplicated.
func isDuplicated(placement *policyv1alpha1.Placement) bool {
	return placement.ReplicaScheduling == nil ||
		placement.ReplicaScheduling.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDuplicated
}
