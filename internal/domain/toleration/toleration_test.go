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

func taint(key string, added time.Duration) corev1.Taint {
	return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: noon.Add(added)}}
}

func tolerating(key string, seconds ...int64) corev1.Toleration {
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
		"an operator that nobody has heard of":  {corev1.Toleration{Key: "k", Value: "v", Operator: "Like"}, false},
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

func TestInFor(t *testing.T) {
	a, b := taint("a", 0), taint("b", time.Minute)
	untimed := corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoExecute}
	later := func(taint corev1.Taint, until time.Duration) Stay { return Stay{Taint: &taint, Until: noon.Add(until)} }
	tests := map[string]struct {
		taints      []corev1.Taint
		tolerations []corev1.Toleration
		want        Stay
	}{
		"no taints let it stay":                       {},
		"an untolerated taint drives it out at once":  {taints: []corev1.Taint{a}, want: Stay{Taint: &a}},
		"a taint of another effect drives nobody out": {taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}},
		"a toleration without seconds is for ever":    {taints: []corev1.Taint{a}, tolerations: []corev1.Toleration{tolerating("a")}},
		"a toleration with seconds counts from when the taint was added": {
			taints: []corev1.Taint{b}, tolerations: []corev1.Toleration{tolerating("b", 30)}, want: later(b, 90*time.Second),
		},
		"one of two taints that is not tolerated is enough": {
			taints: []corev1.Taint{a, b}, tolerations: []corev1.Toleration{tolerating("a", 30)}, want: Stay{Taint: &b},
		},
		"the earlier of two deadlines counts": {
			taints: []corev1.Taint{a, b}, tolerations: []corev1.Toleration{tolerating("a", 300), tolerating("b", 30)}, want: later(b, 90*time.Second),
		},
		"the first toleration of a taint counts, a later one does not": {
			taints: []corev1.Taint{a}, tolerations: []corev1.Toleration{tolerating("a"), tolerating("a", 10)},
		},
		"a toleration used for one taint counts for the others that it tolerates": {
			taints:      []corev1.Taint{a, b},
			tolerations: []corev1.Toleration{tolerating("b"), tolerating("", 10)}, want: later(a, 10*time.Second),
		},
		"a taint without a time sets no deadline":    {taints: []corev1.Taint{untimed}, tolerations: []corev1.Toleration{tolerating("a", 10)}},
		"no time at all ends with the taint":         {taints: []corev1.Taint{a}, tolerations: []corev1.Toleration{tolerating("a", 0)}, want: later(a, 0)},
		"less than no time ends with the taint":      {taints: []corev1.Taint{a}, tolerations: []corev1.Toleration{tolerating("a", -5)}, want: later(a, 0)},
		"the longest time there is does not overrun": {taints: []corev1.Taint{a}, tolerations: []corev1.Toleration{tolerating("a", 1<<62)}, want: later(a, time.Duration(longest)*time.Second)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, InFor(test.taints, test.tolerations)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAStayIsOverAtItsEnd(t *testing.T) {
	a := taint("a", 0)
	stay := Stay{Taint: &a, Until: noon}
	if stay.Over(noon.Add(-time.Nanosecond)) || !stay.Over(noon) {
		t.Error("a stay does not end when it ends")
	}
	if (Stay{}).Over(noon) {
		t.Error("a stay without an end is over")
	}
	if !(Stay{Taint: &a}).Over(noon) {
		t.Error("an untolerated taint waits")
	}
}

func TestMoreTaintsAndShorterTolerationsNeverProlongAStay(t *testing.T) {
	keys := rapid.SampledFrom([]string{"a", "b", "c"})
	drawTaint := rapid.Custom(func(t *rapid.T) corev1.Taint {
		made := taint(keys.Draw(t, "key"), time.Duration(rapid.IntRange(0, 100).Draw(t, "added"))*time.Second)
		if rapid.Bool().Draw(t, "untimed") {
			made.TimeAdded = nil
		}
		return made
	})
	drawToleration := rapid.Custom(func(t *rapid.T) corev1.Toleration {
		if rapid.Bool().Draw(t, "for ever") {
			return tolerating(keys.Draw(t, "key"))
		}
		return tolerating(keys.Draw(t, "key"), rapid.Int64().Draw(t, "seconds"))
	})
	end := func(stay Stay) time.Time {
		if stay.Taint == nil {
			return time.Unix(1<<40, 0)
		}
		return stay.Until
	}
	rapid.Check(t, func(t *rapid.T) {
		taints := rapid.SliceOfN(drawTaint, 1, 4).Draw(t, "taints")
		tolerations := rapid.SliceOfN(drawToleration, 0, 4).Draw(t, "tolerations")
		if fewer := InFor(taints[1:], tolerations); end(InFor(taints, tolerations)).After(end(fewer)) {
			t.Fatalf("one more taint prolongs the stay that ends at %s", end(fewer))
		}
		for i := range tolerations {
			if seconds := tolerations[i].TolerationSeconds; seconds != nil && *seconds > 0 {
				before := InFor(taints, tolerations)
				tolerations[i].TolerationSeconds = new(*seconds / 2)
				if end(InFor(taints, tolerations)).After(end(before)) {
					t.Fatalf("a shorter toleration prolongs the stay that ended at %s", end(before))
				}
			}
		}
	})
}
