package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatCountsAsASignOfLife(t *testing.T) {
	ready := stored("Ready", metav1.ConditionTrue, time.Hour)
	failing := stored("Ready", metav1.ConditionFalse, 0)
	renewed := func(offset time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: noon.Add(offset)} }
	before := Life{Signs: Signs{Ready: &ready, Renewed: renewed(0)}, Heard: noon}
	later := noon.Add(10 * time.Second)
	tests := map[string]struct {
		before *Life
		signs  Signs
		want   time.Time
	}{
		"the first look":           {nil, Signs{}, later},
		"nothing new":              {&before, Signs{Ready: ready.DeepCopy(), Renewed: renewed(0)}, noon},
		"a Lease that was renewed": {&before, Signs{Ready: &ready, Renewed: renewed(10 * time.Second)}, later},
		"a Lease that was renewed by a clock that is late":     {&before, Signs{Ready: &ready, Renewed: renewed(-5 * time.Minute)}, later},
		"a Lease that was renewed by a clock that is early":    {&before, Signs{Ready: &ready, Renewed: renewed(5 * time.Minute)}, later},
		"a condition that changed while the Lease did not":     {&before, Signs{Ready: &failing, Renewed: renewed(0)}, later},
		"a Lease that is gone":                                 {&before, Signs{Ready: &ready}, noon},
		"a condition that is gone":                             {&before, Signs{Renewed: renewed(0)}, noon},
		"a first Lease of a cluster that has not reported yet": {&Life{Heard: noon}, Signs{Renewed: renewed(0)}, later},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Hear(test.before, test.signs, later).Heard; !got.Equal(test.want) {
				t.Errorf("heard at %s, want %s", got, test.want)
			}
		})
	}
}

func TestAClusterIsUnknownWhenItWasSilentForTooLong(t *testing.T) {
	grace := Grace{Period: 40 * time.Second, Startup: time.Minute}
	ready, unknown := stored("Ready", metav1.ConditionTrue, 0), stored("Ready", metav1.ConditionUnknown, 0)
	tests := map[string]struct {
		ready  *metav1.Condition
		silent time.Duration
		want   string
	}{
		"one that reported, within its grace":          {&ready, 40 * time.Second, ""},
		"one that reported, beyond":                    {&ready, 41 * time.Second, "ClusterStatusUnknown"},
		"one that never did, within its longer grace":  {nil, time.Minute, ""},
		"one that never did, beyond":                   {nil, 61 * time.Second, "ClusterStatusNeverUpdated"},
		"one of which it is known":                     {&unknown, time.Hour, ""},
		"one that was heard by a clock that went back": {&ready, -time.Hour, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Silence(Life{Heard: noon.Add(-test.silent)}, test.ready, grace, 3, noon)
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
