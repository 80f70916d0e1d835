package cluster

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Grace says how long a cluster that reports by itself may be silent.
type Grace struct {
	// Period is for one that has reported before.
	Period time.Duration
	// Startup is for one that never has.
	Startup time.Duration
}

// DefaultGrace is four renewals of a Lease, and a minute to begin with.
func DefaultGrace() Grace { return Grace{Period: 40 * time.Second, Startup: time.Minute} }

// Signs are what a cluster that reports by itself shows of itself.
type Signs struct {
	// Ready is its condition Ready; nil if it has none.
	Ready *metav1.Condition
	// Renewed is the time in its Lease, by the clock of the cluster; nil if it has
	// none. It is compared with itself only: clocks differ.
	Renewed *metav1.MicroTime
}

// Life is what is remembered of a cluster from one look to the next.
type Life struct {
	Signs Signs
	// Heard is when a sign changed last, by the clock of who looks.
	Heard time.Time
}

// Hear carries the memory on by one look. before is nil at the first look, which
// counts as a sign of life: who has just begun to listen knows of no silence. That
// a sign is gone, as a Lease that somebody deleted, is no sign.
func Hear(before *Life, signs Signs, now time.Time) Life {
	if before == nil {
		return Life{Signs: signs, Heard: now}
	}
	reported := signs.Ready != nil && !equality.Semantic.DeepEqual(before.Signs.Ready, signs.Ready)
	renewed := signs.Renewed != nil && !equality.Semantic.DeepEqual(before.Signs.Renewed, signs.Renewed)
	if reported || renewed {
		return Life{Signs: signs, Heard: now}
	}
	return *before
}

// Silence returns the condition Ready of a cluster that has been silent for too long.
// It returns nil for any other cluster, for one whose silence is recorded already, and
// for one that was deleted and has no Works left.
func Silence(life Life, ready *metav1.Condition, grace Grace, generation int64, now time.Time) *metav1.Condition {
	limit, reason, message := grace.Period, clusterv1alpha1.ClusterReasonStatusUnknown, "Cluster status controller stopped posting cluster status."
	if ready == nil {
		limit, reason, message = grace.Startup, clusterv1alpha1.ClusterReasonStatusNeverUpdated, "Cluster status controller never posted cluster status."
	}
	if hasLeft(ready) || ready != nil && ready.Status == metav1.ConditionUnknown || now.Sub(life.Heard) <= limit {
		return nil
	}
	return &metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionUnknown, Reason: reason, Message: message,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	}
}
