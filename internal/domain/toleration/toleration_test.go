package toleration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func noExecuteTaint(key string, added time.Duration) corev1.Taint {
	return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: noon.Add(added)}}
}

func existsToleration(key string, seconds ...int64) corev1.Toleration {
	toleration := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
	if len(seconds) > 0 {
		toleration.TolerationSeconds = &seconds[0]
	}
	return toleration
}

func TestTolerates(t *testing.T) {
	noExecute := corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}
	tests := map[string]struct {
		toleration corev1.Toleration
		want       bool
	}{
		"the same key and value":                {corev1.Toleration{Key: "k", Value: "v"}, true},
		"another value":                         {corev1.Toleration{Key: "k", Value: "w"}, false},
		"another key":                           {corev1.Toleration{Key: "l", Value: "v"}, false},
		"any value":                             {corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists}, true},
		"any taint":                             {corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		"another effect":                        {corev1.Toleration{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}, false},
		"the same effect":                       {corev1.Toleration{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}, true},
		"an operator that compares numbers":     {corev1.Toleration{Key: "k", Value: "v", Operator: "Lt"}, false},
		"an unknown operator":                   {corev1.Toleration{Key: "k", Value: "v", Operator: "Like"}, false},
		"no key with Equal and the same value":  {corev1.Toleration{Value: "v"}, true},
		"no key with Equal and no value either": {corev1.Toleration{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Tolerates(&test.toleration, &noExecute); got != test.want {
				t.Errorf("Tolerates = %t", got)
			}
		})
	}
}

func TestEvictionDeadline(t *testing.T) {
	a, b := noExecuteTaint("a", 0), noExecuteTaint("b", time.Minute)
	untimed := corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoExecute}
	later := func(taint corev1.Taint, until time.Duration) Deadline {
		return Deadline{Taint: &taint, Until: noon.Add(until)}
	}
	tests := map[string]struct {
		taints      []corev1.Taint
		tolerations []corev1.Toleration
		want        Deadline
	}{
		"no taints":                                  {},
		"an untolerated taint evicts at once":        {taints: []corev1.Taint{a}, want: Deadline{Taint: &a}},
		"a taint with another effect evicts nothing": {taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}},
		"a toleration without seconds is for ever":   {taints: []corev1.Taint{a}, tolerations: []corev1.Toleration{existsToleration("a")}},
		"a toleration with seconds counts from when the taint was added": {
			taints: []corev1.Taint{b}, tolerations: []corev1.Toleration{existsToleration("b", 30)}, want: later(b, 90*time.Second),
		},
		"one untolerated taint of two evicts at once": {
			taints: []corev1.Taint{a, b}, tolerations: []corev1.Toleration{existsToleration("a", 30)}, want: Deadline{Taint: &b},
		},
		"the earlier of two deadlines counts": {
			taints: []corev1.Taint{a, b}, tolerations: []corev1.Toleration{existsToleration("a", 300), existsToleration("b", 30)}, want: later(b, 90*time.Second),
		},
		"the first toleration of a taint counts, a later one does not": {
			taints: []corev1.Taint{a}, tolerations: []corev1.Toleration{existsToleration("a"), existsToleration("a", 10)},
		},
		"a toleration used for one taint counts for the others that it tolerates": {
			taints:      []corev1.Taint{a, b},
			tolerations: []corev1.Toleration{existsToleration("b"), existsToleration("", 10)}, want: later(a, 10*time.Second),
		},
		"a taint without a time sets no deadline": {taints: []corev1.Taint{untimed}, tolerations: []corev1.Toleration{existsToleration("a", 10)}},
		"0 seconds end with the taint":            {taints: []corev1.Taint{a}, tolerations: []corev1.Toleration{existsToleration("a", 0)}, want: later(a, 0)},
		"negative seconds end with the taint":     {taints: []corev1.Taint{a}, tolerations: []corev1.Toleration{existsToleration("a", -5)}, want: later(a, 0)},
		"the longest time does not overflow":      {taints: []corev1.Taint{a}, tolerations: []corev1.Toleration{existsToleration("a", 1<<62)}, want: later(a, time.Duration(maxSeconds)*time.Second)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, EvictionDeadline(test.taints, test.tolerations)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeadlineIsOver(t *testing.T) {
	a := noExecuteTaint("a", 0)
	deadline := Deadline{Taint: &a, Until: noon}
	if deadline.IsOver(noon.Add(-time.Nanosecond)) || !deadline.IsOver(noon) {
		t.Error("the deadline is not over exactly at its time")
	}
	if (Deadline{}).IsOver(noon) {
		t.Error("a deadline without a taint is over")
	}
	if !(Deadline{Taint: &a}).IsOver(noon) {
		t.Error("an untolerated taint does not evict at once")
	}
}

func TestMoreTaintsAndShorterTolerationsNeverPostponeDeadline(t *testing.T) {
	keys := rapid.SampledFrom([]string{"a", "b", "c"})
	drawTaint := rapid.Custom(func(t *rapid.T) corev1.Taint {
		made := noExecuteTaint(keys.Draw(t, "key"), time.Duration(rapid.IntRange(0, 100).Draw(t, "added"))*time.Second)
		if rapid.Bool().Draw(t, "untimed") {
			made.TimeAdded = nil
		}
		return made
	})
	drawToleration := rapid.Custom(func(t *rapid.T) corev1.Toleration {
		if rapid.Bool().Draw(t, "for ever") {
			return existsToleration(keys.Draw(t, "key"))
		}
		return existsToleration(keys.Draw(t, "key"), rapid.Int64().Draw(t, "seconds"))
	})
	end := func(stay Deadline) time.Time {
		if stay.Taint == nil {
			return time.Unix(1<<40, 0)
		}
		return stay.Until
	}
	rapid.Check(t, func(t *rapid.T) {
		taints := rapid.SliceOfN(drawTaint, 1, 4).Draw(t, "taints")
		tolerations := rapid.SliceOfN(drawToleration, 0, 4).Draw(t, "tolerations")
		if fewer := EvictionDeadline(taints[1:], tolerations); end(EvictionDeadline(taints, tolerations)).After(end(fewer)) {
			t.Fatalf("one more taint postpones the deadline %s", end(fewer))
		}
		for i := range tolerations {
			if seconds := tolerations[i].TolerationSeconds; seconds != nil && *seconds > 0 {
				before := EvictionDeadline(taints, tolerations)
				tolerations[i].TolerationSeconds = new(*seconds / 2)
				if end(EvictionDeadline(taints, tolerations)).After(end(before)) {
					t.Fatalf("a shorter toleration postpones the deadline %s", end(before))
				}
			}
		}
	})
}
