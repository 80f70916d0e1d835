package cluster

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// GracePeriods are the grace periods of a cluster in pull mode for missed heartbeats.
type GracePeriods struct {
	// Period is for a cluster that has reported before.
	Period time.Duration
	// Startup is for a cluster that has never reported.
	Startup time.Duration
}

// DefaultGracePeriods is four renewals of a Lease (40 seconds), and 60 seconds at startup.
func DefaultGracePeriods() GracePeriods {
	return GracePeriods{Period: 40 * time.Second, Startup: time.Minute}
}

// Heartbeat are the heartbeat of a cluster in pull mode: what its agent writes regularly.
type Heartbeat struct {
	// Ready is the condition Ready of the Cluster; nil if it has none.
	Ready *metav1.Condition
	// LeaseRenewed is the renew time of its Lease, by the clock of the cluster; nil if it has none.
	// It is only compared with earlier values, because clocks differ.
	LeaseRenewed *metav1.MicroTime
}

// HeartbeatRecord is the last heartbeat of a cluster.
type HeartbeatRecord struct {
	Heartbeat Heartbeat
	// LastSeen is when the heartbeat changed last, by the clock of this process.
	LastSeen time.Time
}

// RecordHeartbeat returns the record after one more observation. record is nil at the first observation,
// which counts as a heartbeat: a process that has just started knows of no missed ones. A part
// of the heartbeat that disappears, such as a deleted Lease, does not count.
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

// MissedHeartbeatCondition returns the condition Ready=Unknown for a cluster whose heartbeats are missing for
// too long. It returns nil for any other cluster, for one that has that condition already, and
// for one that was deleted and has no Works left.
func MissedHeartbeatCondition(record HeartbeatRecord, ready *metav1.Condition, periods GracePeriods, generation int64, now time.Time) *metav1.Condition {
	limit, reason, message := periods.Period, clusterv1alpha1.ClusterReasonStatusUnknown, "Cluster status controller stopped posting cluster status."
	if ready == nil {
		limit, reason, message = periods.Startup, clusterv1alpha1.ClusterReasonStatusNeverUpdated, "Cluster status controller never posted cluster status."
	}
	if isLeaving(ready) || ready != nil && ready.Status == metav1.ConditionUnknown || now.Sub(record.LastSeen) <= limit {
		return nil
	}
	return &metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionUnknown, Reason: reason, Message: message,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	}
}
