package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRecordHeartbeat(t *testing.T) {
	ready := storedCondition("Ready", metav1.ConditionTrue, time.Hour)
	failing := storedCondition("Ready", metav1.ConditionFalse, 0)
	renewed := func(offset time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: noon.Add(offset)} }
	before := HeartbeatRecord{Heartbeat: Heartbeat{Ready: &ready, LeaseRenewed: renewed(0)}, LastSeen: noon}
	later := noon.Add(10 * time.Second)
	tests := map[string]struct {
		before *HeartbeatRecord
		signs  Heartbeat
		want   time.Time
	}{
		"the first observation":                         {nil, Heartbeat{}, later},
		"no change":                                     {&before, Heartbeat{Ready: ready.DeepCopy(), LeaseRenewed: renewed(0)}, noon},
		"a Lease that was renewed":                      {&before, Heartbeat{Ready: &ready, LeaseRenewed: renewed(10 * time.Second)}, later},
		"a Lease renewed by a clock that is behind":     {&before, Heartbeat{Ready: &ready, LeaseRenewed: renewed(-5 * time.Minute)}, later},
		"a Lease renewed by a clock that is ahead":      {&before, Heartbeat{Ready: &ready, LeaseRenewed: renewed(5 * time.Minute)}, later},
		"a changed condition with an old Lease":         {&before, Heartbeat{Ready: &failing, LeaseRenewed: renewed(0)}, later},
		"a deleted Lease":                               {&before, Heartbeat{Ready: &ready}, noon},
		"a removed condition":                           {&before, Heartbeat{LeaseRenewed: renewed(0)}, noon},
		"the first Lease of a cluster without a status": {&HeartbeatRecord{LastSeen: noon}, Heartbeat{LeaseRenewed: renewed(0)}, later},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := RecordHeartbeat(test.before, test.signs, later).LastSeen; !got.Equal(test.want) {
				t.Errorf("last heartbeat at %s, want %s", got, test.want)
			}
		})
	}
}

func TestMissedHeartbeats(t *testing.T) {
	grace := GracePeriods{Period: 40 * time.Second, Startup: time.Minute}
	ready, unknown := storedCondition("Ready", metav1.ConditionTrue, 0), storedCondition("Ready", metav1.ConditionUnknown, 0)
	tests := map[string]struct {
		ready  *metav1.Condition
		silent time.Duration
		want   string
	}{
		"has reported, within the grace period":     {&ready, 40 * time.Second, ""},
		"has reported, beyond the grace period":     {&ready, 41 * time.Second, "ClusterStatusUnknown"},
		"never reported, within the startup period": {nil, time.Minute, ""},
		"never reported, beyond the startup period": {nil, 61 * time.Second, "ClusterStatusNeverUpdated"},
		"already Unknown":                           {&unknown, time.Hour, ""},
		"a clock that went backwards":               {&ready, -time.Hour, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := MissedHeartbeatCondition(HeartbeatRecord{LastSeen: noon.Add(-test.silent)}, test.ready, grace, 3, noon)
			reason := ""
			if got != nil {
				reason = got.Reason
				if got.Status != metav1.ConditionUnknown || got.ObservedGeneration != 3 || got.Message == "" {
					t.Errorf("incomplete: %+v", got)
				}
			}
			if reason != test.want {
				t.Errorf("reason %q, want %q", reason, test.want)
			}
		})
	}
}
