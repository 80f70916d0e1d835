package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func storedCondition(conditionType string, status metav1.ConditionStatus, age time.Duration) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, LastTransitionTime: metav1.NewTime(noon.Add(-age))}
}

func TestReadinessThresholds(t *testing.T) {
	thresholds := Thresholds{Success: 30 * time.Second, Failure: 20 * time.Second}
	ready := func(status metav1.ConditionStatus) metav1.Condition {
		return storedCondition(clusterv1alpha1.ClusterConditionReady, status, time.Hour)
	}
	since := func(status metav1.ConditionStatus, age time.Duration) metav1.Condition {
		return storedCondition(clusterv1alpha1.ClusterConditionResponding, status, age)
	}
	tests := map[string]struct {
		before  []metav1.Condition
		healthy bool
		want    metav1.ConditionStatus
		left    time.Duration
	}{
		"a new cluster is ready at once":                        {nil, true, metav1.ConditionTrue, 0},
		"a new cluster fails at once":                           {nil, false, metav1.ConditionFalse, 0},
		"an unknown cluster fails at once":                      {[]metav1.Condition{ready(metav1.ConditionUnknown)}, false, metav1.ConditionFalse, 0},
		"an unknown cluster is ready at once":                   {[]metav1.Condition{ready(metav1.ConditionUnknown)}, true, metav1.ConditionTrue, 0},
		"a first failure changes nothing":                       {[]metav1.Condition{ready(metav1.ConditionTrue)}, false, metav1.ConditionTrue, 20 * time.Second},
		"a failure just short of the threshold changes nothing": {[]metav1.Condition{ready(metav1.ConditionTrue), since(metav1.ConditionFalse, 19*time.Second)}, false, metav1.ConditionTrue, time.Second},
		"a failure that lasts changes Ready":                    {[]metav1.Condition{ready(metav1.ConditionTrue), since(metav1.ConditionFalse, 20*time.Second)}, false, metav1.ConditionFalse, 0},
		"a recovery must last":                                  {[]metav1.Condition{ready(metav1.ConditionFalse), since(metav1.ConditionTrue, 29*time.Second)}, true, metav1.ConditionFalse, time.Second},
		"a recovery that lasts changes Ready":                   {[]metav1.Condition{ready(metav1.ConditionFalse), since(metav1.ConditionTrue, 30*time.Second)}, true, metav1.ConditionTrue, 0},
		"a relapse of a recovery leaves it failing":             {[]metav1.Condition{ready(metav1.ConditionFalse), since(metav1.ConditionTrue, 29*time.Second)}, false, metav1.ConditionFalse, 0},
		"the time of the opposite state does not count":         {[]metav1.Condition{ready(metav1.ConditionTrue), since(metav1.ConditionTrue, time.Hour)}, false, metav1.ConditionTrue, 20 * time.Second},
		"a time in the future is ignored":                       {[]metav1.Condition{ready(metav1.ConditionTrue), since(metav1.ConditionFalse, -time.Hour)}, false, metav1.ConditionTrue, 20 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			seen := ReadyCondition(test.healthy, test.healthy, "", 1, metav1.NewTime(noon))
			decision := DecideReadiness(test.before, seen, thresholds, noon)
			if decision.Ready.Status != test.want || decision.Remaining != test.left {
				t.Errorf("Ready = %s for another %s, want %s for another %s", decision.Ready.Status, decision.Remaining, test.want, test.left)
			}
			if pending := decision.Responding != nil; pending != (test.left > 0) {
				t.Errorf("condition Responding exists: %t", pending)
			}
		})
	}
}

func TestReadinessWithoutThresholds(t *testing.T) {
	before := []metav1.Condition{storedCondition(clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue, 0)}
	decision := DecideReadiness(before, ReadyCondition(false, false, "refused", 1, metav1.NewTime(noon)), Thresholds{}, noon)
	if decision.Ready.Status != metav1.ConditionFalse || decision.Responding != nil {
		t.Errorf("%+v", decision)
	}
}

// applyProbe applies one probe's result. Like a process that has just started, it uses only the stored
// conditions, in stored form.
func applyProbe(before []metav1.Condition, healthy bool, thresholds Thresholds, now time.Time) []metav1.Condition {
	after := append([]metav1.Condition{}, before...)
	DecideReadiness(before, ReadyCondition(healthy, healthy, "", 1, metav1.NewTime(now)), thresholds, now).Apply(&after)
	for i := range after {
		after[i].LastTransitionTime = after[i].LastTransitionTime.Rfc3339Copy()
	}
	return after
}

func TestReadinessIsStableWhileProbesAgree(t *testing.T) {
	thresholds := DefaultThresholds()
	lost := applyProbe(applyProbe(nil, true, thresholds, noon), false, thresholds, noon.Add(1500*time.Millisecond))
	later := applyProbe(lost, false, thresholds, noon.Add(20*time.Second))
	if diff := cmp.Diff(lost, later); diff != "" {
		t.Errorf("a second failure (-before +after):\n%s", diff)
	}
	back := applyProbe(later, true, thresholds, noon.Add(21*time.Second))
	if diff := cmp.Diff(applyProbe(nil, true, thresholds, noon), back); diff != "" {
		t.Errorf("after a failure that did not last (-before +after):\n%s", diff)
	}
}

func TestReadinessThresholdTiming(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		thresholds := Thresholds{
			Success: time.Duration(rapid.IntRange(1, 40_000).Draw(t, "success")) * time.Millisecond,
			Failure: time.Duration(rapid.IntRange(1, 40_000).Draw(t, "failure")) * time.Millisecond,
		}
		now := noon.Add(time.Duration(rapid.IntRange(0, 999).Draw(t, "start")) * time.Millisecond)
		var known []metav1.Condition
		var healthySince time.Time
		var healthy bool
		for look := range rapid.IntRange(1, 60).Draw(t, "looks") {
			sees := rapid.Float64Range(0, 1).Draw(t, "sees") < 0.8 == healthy
			if look == 0 || sees != healthy {
				healthy, healthySince = sees, now
			}
			was := conditions.Get(known, clusterv1alpha1.ClusterConditionReady)
			next := applyProbe(known, healthy, thresholds, now)
			is := conditions.Get(next, clusterv1alpha1.ClusterConditionReady)
			lasted, threshold := now.Sub(healthySince), thresholds.Failure
			if healthy {
				threshold = thresholds.Success
			}
			if was != nil && was.Status != is.Status && lasted < threshold {
				t.Fatalf("Ready became %s after %s, and the threshold is %s", is.Status, lasted, threshold)
			}
			if (is.Status == metav1.ConditionTrue) != healthy && lasted >= threshold+storedTimePrecision {
				t.Fatalf("Ready is still %s after %s, and the threshold is %s", is.Status, lasted, threshold)
			}
			known, now = next, now.Add(time.Duration(rapid.IntRange(100, 12_000).Draw(t, "pause"))*time.Millisecond)
		}
	})
}

// TestRenamedRespondingIsRemoved requires that a probe removes the condition of an earlier release.
func TestRenamedRespondingIsRemoved(t *testing.T) {
	stored := []metav1.Condition{{Type: clusterv1alpha1.RenamedResponding, Status: metav1.ConditionTrue}}
	ReadinessDecision{Ready: metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}.Apply(&stored)
	if len(stored) != 1 || stored[0].Type != clusterv1alpha1.ClusterConditionReady {
		t.Errorf("the conditions are %+v, want only Ready", stored)
	}
}
