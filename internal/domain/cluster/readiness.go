package cluster

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// Thresholds say how long a cluster must be seen in a new state before its
// condition follows.
type Thresholds struct {
	// Success is for a cluster that is seen healthy again.
	Success time.Duration
	// Failure is for one that is seen failing.
	Failure time.Duration
}

// DefaultThresholds are half a minute each way.
func DefaultThresholds() Thresholds {
	return Thresholds{Success: 30 * time.Second, Failure: 30 * time.Second}
}

// precision is that of times in stored objects.
const precision = time.Second

// Judgement is what one look at a cluster changes in its conditions.
type Judgement struct {
	// Ready is the condition Ready to write.
	Ready metav1.Condition
	// Answering is what was seen, as long as Ready does not follow yet; nil when
	// they agree, and then the condition goes.
	Answering *metav1.Condition
	// Left is how much longer that must last until Ready follows.
	Left time.Duration
}

// Judge compares the condition Ready that was seen with those that are stored.
//
// The condition of a cluster that was deleted and has no Works any longer stays. A
// cluster without a condition, or with an Unknown one, gets what was seen at
// once. Otherwise the stored condition stays until the new state has lasted for
// its threshold: a single failed probe moves nothing. Since when it lasts is told
// by the condition Answering, which is stored while the two disagree. So a process
// that starts goes on counting where the last one ended, and nothing is written as
// long as they agree. Its time is rounded up, for stored times have no fractions
// and no condition comes before its time.
func Judge(stored []metav1.Condition, seen metav1.Condition, thresholds Thresholds, now time.Time) Judgement {
	healthy := seen.Status == metav1.ConditionTrue
	threshold := thresholds.Failure
	if healthy {
		threshold = thresholds.Success
	}
	ready := conditions.Get(stored, clusterv1alpha1.ClusterConditionReady)
	if hasLeft(ready) {
		return Judgement{Ready: *ready}
	}
	if ready == nil || ready.Status == metav1.ConditionUnknown || (ready.Status == metav1.ConditionTrue) == healthy || threshold <= 0 {
		return Judgement{Ready: seen}
	}
	since := now.Add(precision - 1).Truncate(precision)
	before := conditions.Get(stored, clusterv1alpha1.ClusterConditionAnswering)
	// A time that is to come is that of another clock.
	if before != nil && before.Status == seen.Status && !before.LastTransitionTime.After(since) {
		since = before.LastTransitionTime.Time
	}
	left := threshold - now.Sub(since)
	if left <= 0 {
		return Judgement{Ready: seen}
	}
	answering := seen
	answering.Type = clusterv1alpha1.ClusterConditionAnswering
	answering.LastTransitionTime = metav1.NewTime(since)
	answering.Message = conditions.Clip(fmt.Sprintf("condition Ready follows if this lasts for %s: %s", threshold, seen.Message))
	return Judgement{Ready: *ready, Answering: &answering, Left: left}
}

// Apply brings the conditions of a cluster in line with the judgement.
func (j Judgement) Apply(stored *[]metav1.Condition) {
	conditions.Set(stored, j.Ready)
	if j.Answering == nil {
		conditions.Remove(stored, clusterv1alpha1.ClusterConditionAnswering)
		return
	}
	if before := conditions.Get(*stored, j.Answering.Type); before != nil && !before.LastTransitionTime.Equal(&j.Answering.LastTransitionTime) {
		conditions.Remove(stored, j.Answering.Type)
	}
	conditions.Set(stored, *j.Answering)
}

// Seen is the condition Ready that a probe calls for. cause says more about a
// failure and may be empty.
func Seen(reachable, healthy bool, cause string, generation int64, now metav1.Time) metav1.Condition {
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

// Uncollected is the condition Ready of a cluster that cannot even be asked.
func Uncollected(cause string, generation int64, now metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse,
		Reason:  clusterv1alpha1.ClusterReasonStatusCollectionFailed,
		Message: conditions.Clip(cause), ObservedGeneration: generation, LastTransitionTime: now,
	}
}

func withCause(message, cause string) string {
	if cause == "" {
		return message
	}
	return conditions.Clip(message + ": " + cause)
}
