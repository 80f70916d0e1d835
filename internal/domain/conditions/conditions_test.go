package conditions

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func atMinute(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2024, 5, 1, 10, minute, 0, 0, time.UTC))
}

func newCondition(status metav1.ConditionStatus, reason string, generation int64, minute int) metav1.Condition {
	return metav1.Condition{
		Type: "Applied", Status: status, Reason: reason, Message: "m",
		ObservedGeneration: generation, LastTransitionTime: atMinute(minute),
	}
}

func TestSet(t *testing.T) {
	stored := newCondition(metav1.ConditionTrue, "AppliedSuccessful", 1, 0)
	tests := map[string]struct {
		before  []metav1.Condition
		set     metav1.Condition
		want    []metav1.Condition
		changed bool
	}{
		"a new condition is stored with the given time": {
			set:     stored,
			want:    []metav1.Condition{stored},
			changed: true,
		},
		"the same condition later changes nothing": {
			before: []metav1.Condition{stored},
			set:    newCondition(metav1.ConditionTrue, "AppliedSuccessful", 1, 5),
			want:   []metav1.Condition{stored},
		},
		"a status flip moves the transition time": {
			before:  []metav1.Condition{stored},
			set:     newCondition(metav1.ConditionFalse, "AppliedFailed", 1, 5),
			want:    []metav1.Condition{newCondition(metav1.ConditionFalse, "AppliedFailed", 1, 5)},
			changed: true,
		},
		"another reason for the same status keeps the transition time": {
			before:  []metav1.Condition{stored},
			set:     newCondition(metav1.ConditionTrue, "Other", 1, 5),
			want:    []metav1.Condition{newCondition(metav1.ConditionTrue, "Other", 1, 0)},
			changed: true,
		},
		"a newer generation is stored although the status is the same": {
			before:  []metav1.Condition{stored},
			set:     newCondition(metav1.ConditionTrue, "AppliedSuccessful", 2, 5),
			want:    []metav1.Condition{newCondition(metav1.ConditionTrue, "AppliedSuccessful", 2, 0)},
			changed: true,
		},
		"other types are left alone": {
			before:  []metav1.Condition{{Type: "Dispatching", Status: metav1.ConditionTrue}},
			set:     stored,
			want:    []metav1.Condition{{Type: "Dispatching", Status: metav1.ConditionTrue}, stored},
			changed: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.before
			if changed := Set(&got, test.set); changed != test.changed {
				t.Errorf("changed = %v, want %v", changed, test.changed)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("conditions differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIs(t *testing.T) {
	stored := []metav1.Condition{newCondition(metav1.ConditionTrue, "r", 1, 0)}
	if !HasStatus(stored, "Applied", metav1.ConditionTrue) {
		t.Error("a stored status is not recognised")
	}
	if HasStatus(stored, "Applied", metav1.ConditionFalse) {
		t.Error("a True condition counts as False")
	}
	if HasStatus(nil, "Applied", metav1.ConditionUnknown) {
		t.Error("a missing condition counts as Unknown")
	}
}

func TestClipAtRuneBoundary(t *testing.T) {
	for _, r := range []string{"a", "é", "世", "😀"} {
		for pad := range 4 {
			message := strings.Repeat("x", pad) + strings.Repeat(r, 2000)
			got := LimitMessage(message)
			if len(got) > MaxMessageBytes || len(got) < MaxMessageBytes-utf8.UTFMax || !utf8.ValidString(got) {
				t.Errorf("Clip(%d x, then %q...) has %d bytes, valid=%v", pad, r, len(got), utf8.ValidString(got))
			}
		}
	}
}

func TestSetTwiceChangesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stored []metav1.Condition
		for range rapid.IntRange(0, 5).Draw(t, "earlier writes") {
			Set(&stored, drawCondition(t))
		}
		c := drawCondition(t)
		Set(&stored, c)
		if Set(&stored, c) {
			t.Fatalf("the second write of %+v reports a change", c)
		}
		if got := Get(stored, c.Type); got.ObservedGeneration != c.ObservedGeneration {
			t.Fatalf("observedGeneration = %d, want %d", got.ObservedGeneration, c.ObservedGeneration)
		}
	})
}

func drawCondition(t *rapid.T) metav1.Condition {
	return metav1.Condition{
		Type:               rapid.SampledFrom([]string{"A", "B"}).Draw(t, "type"),
		Status:             rapid.SampledFrom([]metav1.ConditionStatus{"True", "False", "Unknown"}).Draw(t, "status"),
		Reason:             rapid.SampledFrom([]string{"R", "S"}).Draw(t, "reason"),
		Message:            rapid.StringN(0, 2000, -1).Draw(t, "message"),
		ObservedGeneration: rapid.Int64Range(0, 3).Draw(t, "generation"),
		LastTransitionTime: atMinute(rapid.IntRange(0, 59).Draw(t, "minute")),
	}
}
