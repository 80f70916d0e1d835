package cluster

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// GracePeriods specify how long a cluster in pull mode may send no heartbeat before it counts as
// unreachable.
type GracePeriods struct {
	// Period is for a cluster that has reported before.
	Period time.Duration
	// Startup is for a cluster that has never reported.
	Startup time.Duration
}

// DefaultGracePeriods returns a Period of 40 seconds, in which a Lease is renewed four times, and a
// Startup of 60 seconds.
func DefaultGracePeriods() GracePeriods {
	return GracePeriods{Period: 40 * time.Second, Startup: time.Minute}
}

// Heartbeat contains the data that the agent of a cluster in pull mode writes regularly.
type Heartbeat struct {
	// Ready is the Cluster's condition Ready, or nil if it has none.
	Ready *metav1.Condition
	// LeaseRenewed is the renew time of the cluster's Lease, by the cluster's clock, or nil if there is
	// none. It is only compared with earlier values, because the clocks of the cluster and this process
	// differ.
	LeaseRenewed *metav1.MicroTime
}

// HeartbeatRecord contains a cluster's last heartbeat.
type HeartbeatRecord struct {
	Heartbeat Heartbeat
	// LastSeen is when the heartbeat last changed, by this process's clock.
	LastSeen time.Time
}

// RecordHeartbeat returns the record after one more observation. record is nil at the first
// observation, which counts as a heartbeat, because a process that has just started knows of no missed
// heartbeats. If a part of the heartbeat disappears, for example because the Lease was deleted, this
// does not count as a heartbeat.
func RecordHeartbeat(record *HeartbeatRecord, heartbeat Heartbeat, now time.Time) HeartbeatRecord {
	if record == nil {
		return HeartbeatRecord{Heartbeat: heartbeat, LastSeen: now}
	}
	reported := heartbeat.Ready != nil && !equality.Semantic.DeepEqual(record.Heartbeat.Ready, heartbeat.Ready)
	renewed := heartbeat.LeaseRenewed != nil && !equality.Semantic.DeepEqual(record.Heartbeat.LeaseRenewed, heartbeat.LeaseRenewed)
	if reported || renewed {
		return HeartbeatRecord{Heartbeat: heartbeat, LastSeen: now}
	}
	return *record
}

// MissedHeartbeatCondition returns the condition Ready=Unknown for a cluster that sent no heartbeat for
// longer than its grace period. It returns nil for all other clusters, for a cluster that already has
// this condition, and for a deleted cluster without remaining Works.
func MissedHeartbeatCondition(record HeartbeatRecord, ready *metav1.Condition, periods GracePeriods, generation int64,
	now time.Time) *metav1.Condition {
	limit, reason, message := periods.Period, clusterv1alpha1.ClusterReasonStatusUnknown,
		"Cluster status controller stopped posting cluster status."
	if ready == nil {
		limit, reason, message = periods.Startup, clusterv1alpha1.ClusterReasonStatusNeverUpdated,
			"Cluster status controller never posted cluster status."
	}
	if isLeaving(ready) || ready != nil && ready.Status == metav1.ConditionUnknown || now.Sub(record.LastSeen) <= limit {
		return nil
	}
	return &metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionUnknown, Reason: reason, Message: message,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	}
}
