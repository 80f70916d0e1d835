package cluster

import (
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

// Observation is what a process remembers of how it saw a cluster.
type Observation struct {
	// Healthy is what was seen last.
	Healthy bool
	// Since is when it was first seen so.
	Since time.Time
}

// Observe carries the memory on by one look at the cluster. before is nil at the
// first look.
func Observe(before *Observation, healthy bool, now time.Time) Observation {
	if before != nil && before.Healthy == healthy {
		return *before
	}
	return Observation{Healthy: healthy, Since: now}
}

// Readiness is the condition Ready to write, given the one that was seen, the one
// that is stored (nil if there is none), and since when the cluster is seen so.
//
// A cluster without a condition, or with an Unknown one, gets what was seen at
// once, and so does one that is seen healthy at the first look of a process.
// Otherwise the stored condition stays until the new state has lasted for its
// threshold: a single failed probe moves nothing.
func Readiness(stored *metav1.Condition, seen metav1.Condition, observation Observation, first bool, thresholds Thresholds, now time.Time) metav1.Condition {
	if stored == nil || stored.Status == metav1.ConditionUnknown || (stored.Status == metav1.ConditionTrue) == observation.Healthy {
		return seen
	}
	if first && observation.Healthy {
		return seen
	}
	threshold := thresholds.Failure
	if observation.Healthy {
		threshold = thresholds.Success
	}
	if now.Sub(observation.Since) >= threshold {
		return seen
	}
	return *stored
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
