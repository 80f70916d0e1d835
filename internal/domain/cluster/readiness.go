package cluster

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// Thresholds specify how long a new state must last before the condition Ready changes.
type Thresholds struct {
	// Success is the threshold for a cluster that becomes healthy.
	Success time.Duration
	// Failure is the threshold for a cluster that fails.
	Failure time.Duration
}

// DefaultThresholds returns 30 seconds for both thresholds.
func DefaultThresholds() Thresholds {
	return Thresholds{Success: 30 * time.Second, Failure: 30 * time.Second}
}

// storedTimePrecision is the precision of times in stored objects.
const storedTimePrecision = time.Second

// ReadinessDecision is the change that one probe of a cluster makes to the Cluster's conditions.
type ReadinessDecision struct {
	// Ready is the condition Ready to write.
	Ready metav1.Condition
	// Responding is the condition that contains the observed state as long as Ready shows another state.
	// If Ready shows the observed state, Responding is nil and the stored condition is removed.
	Responding *metav1.Condition
	// Remaining is how much longer the observed state must last before Ready changes to it.
	Remaining time.Duration
}

// DecideReadiness compares the observed condition Ready with the stored conditions.
//
// The condition of a deleted cluster without Works stays. A cluster without the condition Ready, or
// with Ready=Unknown, immediately gets the observed condition. Otherwise the stored condition stays
// until the new state has lasted for its threshold, so a single failed probe changes nothing.
//
// While the stored and the observed state differ, the condition Responding stores the new state's start
// time. Therefore a restarted process continues to count from this time, and nothing is written while
// the states are the same. The start time is rounded up, because stored times have no fractions of a
// second and the condition must not change too early.
func DecideReadiness(stored []metav1.Condition, observed metav1.Condition, thresholds Thresholds, now time.Time) ReadinessDecision {
	healthy := observed.Status == metav1.ConditionTrue
	threshold := thresholds.Failure
	if healthy {
		threshold = thresholds.Success
	}
	ready := conditions.Get(stored, clusterv1alpha1.ClusterConditionReady)
	if isLeaving(ready) {
		return ReadinessDecision{Ready: *ready}
	}
	if ready == nil || ready.Status == metav1.ConditionUnknown || (ready.Status == metav1.ConditionTrue) == healthy || threshold <= 0 {
		return ReadinessDecision{Ready: observed}
	}
	since := now.Add(storedTimePrecision - 1).Truncate(storedTimePrecision)
	before := conditions.Get(stored, clusterv1alpha1.ClusterConditionResponding)
	// Ignore a stored start time in the future, because another clock set it.
	if before != nil && before.Status == observed.Status && !before.LastTransitionTime.After(since) {
		since = before.LastTransitionTime.Time
	}
	remaining := threshold - now.Sub(since)
	if remaining <= 0 {
		return ReadinessDecision{Ready: observed}
	}
	responding := observed
	responding.Type = clusterv1alpha1.ClusterConditionResponding
	responding.LastTransitionTime = metav1.NewTime(since)
	responding.Message = conditions.LimitMessage(fmt.Sprintf("condition Ready follows if this lasts for %s: %s", threshold, observed.Message))
	return ReadinessDecision{Ready: *ready, Responding: &responding, Remaining: remaining}
}

// Apply writes the decision to the cluster's conditions.
func (r ReadinessDecision) Apply(stored *[]metav1.Condition) {
	conditions.Set(stored, r.Ready)
	conditions.Remove(stored, clusterv1alpha1.RenamedResponding)
	if r.Responding == nil {
		conditions.Remove(stored, clusterv1alpha1.ClusterConditionResponding)
		return
	}
	if before := conditions.Get(*stored, r.Responding.Type); before != nil &&
		!before.LastTransitionTime.Equal(&r.Responding.LastTransitionTime) {
		conditions.Remove(stored, r.Responding.Type)
	}
	conditions.Set(stored, *r.Responding)
}

// ReadyCondition returns the condition Ready for a probe's result. cause contains details about a
// failure and may be empty.
func ReadyCondition(reachable, healthy bool, cause string, generation int64, now metav1.Time) metav1.Condition {
	condition := metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse,
		ObservedGeneration: generation, LastTransitionTime: now,
	}
	switch {
	case reachable && healthy:
		condition.Status = metav1.ConditionTrue
		condition.Reason = clusterv1alpha1.ClusterReasonReady
		condition.Message = "cluster is healthy and ready to accept workloads"
		return condition
	case reachable:
		condition.Reason = clusterv1alpha1.ClusterReasonNotReady
		condition.Message = "cluster is reachable but health endpoint responded without ok"
	default:
		condition.Reason = clusterv1alpha1.ClusterReasonNotReachable
		condition.Message = "cluster is not reachable"
	}
	condition.Message = withCause(condition.Message, cause)
	return condition
}

// CollectionFailedCondition returns the condition Ready for a cluster to which no request can be sent,
// for example because its address is missing.
func CollectionFailedCondition(cause string, generation int64, now metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse,
		Reason:  clusterv1alpha1.ClusterReasonStatusCollectionFailed,
		Message: conditions.LimitMessage(cause), ObservedGeneration: generation, LastTransitionTime: now,
	}
}

func withCause(message, cause string) string {
	if cause == "" {
		return message
	}
	return conditions.LimitMessage(message + ": " + cause)
}
