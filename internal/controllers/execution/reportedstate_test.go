package execution

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/loop"
)

func TestReportedState(t *testing.T) {
	tests := map[string]struct {
		wrote    bool
		failures []error
		want     loop.StatusState
	}{
		"an object was written":                     {wrote: true, want: loop.StatusInProgress},
		"nothing had to change":                     {want: loop.StatusSettled},
		"a manifest failed":                         {failures: []error{errors.New("rejected")}, want: loop.StatusFailed},
		"one object was written and another failed": {wrote: true, failures: []error{errors.New("rejected")}, want: loop.StatusFailed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reportedState(test.wrote, test.failures); got != test.want {
				t.Errorf("state %d, want %d", got, test.want)
			}
		})
	}
}

func TestAppliedTrackerRecordsRecentWrites(t *testing.T) {
	start, tracker := time.Unix(1000, 0), newAppliedTracker()
	karmadaWork := types.NamespacedName{Namespace: "karmada-es-m1", Name: "web"}
	for _, step := range []struct {
		after time.Duration
		wrote bool
		want  bool
	}{
		{0, false, false}, {time.Second, true, true}, {2 * time.Second, false, true},
		{time.Second + statusDelay, false, false}, {2*time.Second + statusDelay, false, false},
	} {
		if got := tracker.recordWrite(karmadaWork, step.wrote, start.Add(step.after)); got != step.want {
			t.Errorf("after %s recordWrite(%t) = %t, want %t", step.after, step.wrote, got, step.want)
		}
	}
	tracker.recordWrite(karmadaWork, true, start)
	tracker.deleteWork(karmadaWork)
	if tracker.recordWrite(karmadaWork, false, start) {
		t.Error("the write of a deleted Work is still recorded")
	}
}
