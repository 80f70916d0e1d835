package cluster

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// GracePeriods are the times that a cluster in pull mode may send no heartbeat before it counts as
// unreachable.
type GracePeriods struct {
	// Period is for a cluster that has reported before.
	Period time.Duration
	// Startup is for a cluster that has never reported.
	Startup time.Duration
}

// DefaultGracePeriods returns 40 seconds, the time of four renewals of a Lease, and 60 seconds
// for startup.
func DefaultGracePeriods() GracePeriods {
	return GracePeriods{Period: 40 * time.Second, Startup: time.Minute}
}

// Heartbeat holds the values that the agent of a cluster in pull mode writes regularly.
type Heartbeat struct {
	// Ready is the condition Ready of the Cluster, or nil if it has none.
	Ready *metav1.Condition
	// LeaseRenewed is the renew time of the Lease of the cluster, by the clock of the cluster. It
	// is nil if there is no renew time. It is only compared with earlier values, because clocks
	// differ.
	LeaseRenewed *metav1.MicroTime
}

// HeartbeatRecord is the last heartbeat of a cluster.
type HeartbeatRecord struct {
	Heartbeat Heartbeat
	// LastSeen is when the heartbeat changed last, by the clock of this process.
	LastSeen time.Time
}

// RecordHeartbeat returns the record after one more observation. record is nil at the first
// observation, which counts as a heartbeat, because a process that has just started knows of no
// missed heartbeats. A part of the heartbeat that disappears, such as a deleted Lease, does not
// count as a heartbeat.
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

// MissedHeartbeatCondition returns the condition Ready=Unknown for a cluster that sent no heartbeat
// for longer than its grace period. It returns nil for any other cluster, for a cluster that has
// that condition already, and for a deleted cluster that has no Works left.
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
