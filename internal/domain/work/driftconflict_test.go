package work

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

var noon = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

// repairedTimes returns the history after n repairs in immediate succession.
func repairedTimes(n int) RepairBackoff {
	var backoff RepairBackoff
	for range n {
		backoff = backoff.WithRepair(noon)
	}
	return backoff
}

func TestRepairBackoff(t *testing.T) {
	tests := map[string]struct {
		repairs    int
		after      time.Duration
		wait       time.Duration
		isConflict bool
	}{
		"an object that was never repaired":                    {0, 0, 0, false},
		"four changes by hand":                                 {4, 0, 0, false},
		"the fifth repair in a row":                            {5, 0, time.Second, true},
		"the sixth":                                            {6, 0, 2 * time.Second, true},
		"a part of the delay is over":                          {6, 500 * time.Millisecond, 1500 * time.Millisecond, true},
		"the delay is over":                                    {6, 2 * time.Second, 0, true},
		"the delay is at most a minute":                        {500, 0, time.Minute, true},
		"a repair that lasts ends the conflict":                {5, 13 * time.Second, 0, false},
		"a delayed repair must last longer":                    {500, 100 * time.Second, 0, true},
		"a delayed repair that lasts longer ends the conflict": {500, 131 * time.Second, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := noon.Add(test.after)
			backoff := repairedTimes(test.repairs)
			if got := backoff.RemainingDelay(now); got != test.wait {
				t.Errorf("Wait = %v, want %v", got, test.wait)
			}
			if isConflict, left := backoff.IsDriftConflict(now); isConflict != test.isConflict || isConflict != (left > 0) {
				t.Errorf("IsDriftConflict = %v, %v, want %v", isConflict, left, test.isConflict)
			}
		})
	}
	if got := repairedTimes(5).WithRepair(noon.Add(time.Minute)); got.CloseRepairs != 1 {
		t.Errorf("%d repairs after a pause, want 1", got.CloseRepairs)
	}
}

func TestRepairRateIsLimited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, backoff, made := noon, RepairBackoff{}, 0
		for now.Before(noon.Add(time.Hour)) {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "reaction")))
			now = now.Add(backoff.RemainingDelay(now))
			backoff = backoff.WithRepair(now)
			made++
		}
		// After 7 delayed repairs, the delay is one minute, so at most 60 more repairs fit into an
		// hour.
		if made > repairsWithoutDelay+7+60 {
			t.Errorf("%d repairs within an hour", made)
		}
	})
}

func TestDescribeDriftConflict(t *testing.T) {
	at := func(second int) *metav1.Time {
		return &metav1.Time{Time: noon.Add(time.Duration(second) * time.Second)}
	}
	writtenBy := func(entries ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
		object := labelledConfigMap("true", "id-1", "uid-1", "w-1", "")
		object.SetManagedFields(entries)
		return object
	}
	manifest := labelledConfigMap("true", "id-1", "uid-1", "w-1", "")
	tests := map[string]struct {
		observed *unstructured.Unstructured
		want     string
	}{
		"the last writer": {writtenBy(
			metav1.ManagedFieldsEntry{Manager: "installer", Time: at(1)}, metav1.ManagedFieldsEntry{Manager: "tuner", Time: at(3)},
			metav1.ManagedFieldsEntry{Manager: "cleaner", Time: at(2)},
		), `ConfigMap shop/c in cluster m1: field manager "tuner" changes it`},
		"not our own manager": {writtenBy(
			metav1.ManagedFieldsEntry{Manager: "tuner", Time: at(3)}, metav1.ManagedFieldsEntry{Manager: "karmada", Time: at(4)},
		), `field manager "tuner"`},
		"not a writer of the status": {writtenBy(
			metav1.ManagedFieldsEntry{Manager: "tuner", Time: at(3)}, metav1.ManagedFieldsEntry{Manager: "kubelet", Subresource: "status", Time: at(4)},
		), `field manager "tuner"`},
		"a client that scales": {writtenBy(
			metav1.ManagedFieldsEntry{Manager: "hpa", Subresource: "scale", Time: at(3)},
		), `field manager "hpa"`},
		"an entry for scale has no time": {writtenBy(
			metav1.ManagedFieldsEntry{Manager: "installer", Time: at(1)}, metav1.ManagedFieldsEntry{Manager: "karmada", Time: at(2)},
			metav1.ManagedFieldsEntry{Manager: "hpa", Subresource: "scale"},
		), `field manager "hpa"`},
		"a scale before our last write": {writtenBy(
			metav1.ManagedFieldsEntry{Manager: "hpa", Subresource: "scale"}, metav1.ManagedFieldsEntry{Manager: "karmada", Time: at(2)},
			metav1.ManagedFieldsEntry{Manager: "tuner", Time: at(3)},
		), `field manager "tuner"`},
		"another Work":      {labelledConfigMap("true", "id-2", "uid-2", "w-2", ""), "Work karmada-es-m1/w-2 (permanent id id-2) changes it"},
		"no managed fields": {writtenBy(), "an unknown client changes it"},
		"deleted":           {nil, "an unknown client deletes it"},
		"the remedy":        {writtenBy(), "write into the template what the other client writes, or stop that client"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := DescribeDriftConflict("m1", manifest, test.observed, "karmada"); !strings.Contains(got, test.want) {
				t.Errorf("%q lacks %q", got, test.want)
			}
		})
	}
}

func TestDriftConflictCondition(t *testing.T) {
	of := &workv1alpha1.Work{}
	if got := DriftConflictCondition(of, nil); got.Status != metav1.ConditionFalse {
		t.Errorf("without a drift conflict: %+v", got)
	}
	if got := DriftConflictCondition(of, []string{"a"}); got.Status != metav1.ConditionTrue || got.Message != "a" {
		t.Errorf("with one drift conflict: %+v", got)
	}
	if got := DriftConflictCondition(of, []string{"a", "b", "c"}); got.Message != "a (and 2 more)" {
		t.Errorf("with three drift conflicts: %+v", got)
	}
}
