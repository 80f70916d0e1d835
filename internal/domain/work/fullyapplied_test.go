package work

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

func TestFullyApplied(t *testing.T) {
	applied := func(cluster string) *workv1alpha1.Work { return reporting(t, cluster, "True") }
	behind := func(cluster string) *workv1alpha1.Work {
		w := applied(cluster)
		w.Generation, w.Status.Conditions[0].ObservedGeneration = 2, 1
		return w
	}
	held := func(of *workv1alpha1.Work) *workv1alpha1.Work {
		of.Spec.SuspendDispatching = new(true)
		of.Status.Conditions = append(of.Status.Conditions, metav1.Condition{
			Type: "Dispatching", Status: "False", ObservedGeneration: of.Generation})
		return of
	}
	leaving := applied("m1")
	leaving.DeletionTimestamp = &metav1.Time{}
	purged := sets.New("m1", "m9")
	works := func(list ...*workv1alpha1.Work) []*workv1alpha1.Work { return list }
	const all = "All works have been successfully applied"
	const failed = "Failed to apply all works, see status.aggregatedStatus for details"
	tests := map[string]struct {
		expected      []string
		works         []*workv1alpha1.Work
		circumstances Circumstances
		want          metav1.ConditionStatus
		message       string
	}{
		"all have it":                  {[]string{"m1", "m2"}, works(applied("m1"), applied("m2")), Circumstances{}, "True", all},
		"nothing is expected":          {nil, nil, Circumstances{}, "False", failed + ": no cluster is chosen"},
		"one has no Work yet":          {[]string{"m1", "m2"}, works(applied("m1")), Circumstances{}, "False", failed + ": m2: there is no Work yet"},
		"one has not answered":         {[]string{"m1"}, works(reporting(t, "m1", "")), Circumstances{}, "False", failed + ": m1: not applied yet"},
		"one has it without being due": {[]string{"m1"}, works(applied("m1"), applied("m2")), Circumstances{}, "False", failed + ": m2: chosen no more, the Work is still there"},
		"those that refused are named in order, each with its cause": {
			[]string{"m1", "m2", "m3"}, works(reporting(t, "m3", "False"), applied("m2"), reporting(t, "m1", "False")), Circumstances{},
			"False", failed + ": m1: message of m1; m3: message of m3"},
		"the same cause is told once": {
			[]string{"m1", "m2", "m3"}, works(reporting(t, "m2", "False")), Circumstances{},
			"False", failed + ": m1, m3: there is no Work yet; m2: message of m2"},
		"another has it instead": {
			[]string{"m1"}, works(applied("m2")), Circumstances{},
			"False", failed + ": m1: there is no Work yet; m2: chosen no more, the Work is still there"},
		"a Work that could not be made": {
			[]string{"m1"}, nil, Circumstances{Unrendered: map[string]string{"m1": "no such path"}}, "False", failed + ": m1: no such path"},
		"an earlier state of a Work is not what is wanted": {
			[]string{"m1"}, works(behind("m1")), Circumstances{}, "False", failed + ": m1: the present version is not applied yet"},
		"a cluster that is lost does not get what is new": {
			[]string{"m1"}, works(behind("m1")), Circumstances{Unready: down("m1")},
			"False", failed + ": m1: the present version is not applied, the cluster is not ready since 2030-01-01T12:00:00Z"},
		"clusters that are lost are named, though they have it": {
			[]string{"m1", "m2"}, works(applied("m1"), applied("m2")), Circumstances{Unready: down("m2")},
			"True", all + "; m2: the status is old, the cluster is not ready"},
		"clusters to which changes are held back are named": {
			[]string{"m1", "m2"}, works(applied("m1"), held(applied("m2"))), Circumstances{}, "True", all + "; m2: dispatching is suspended"},
		"a suspension does not hide what the member refused": {
			[]string{"m1", "m2"}, works(applied("m1"), held(reporting(t, "m2", "False"))), Circumstances{}, "False", failed + ": m2: message of m2"},
		"a suspension beside a refusal is named too": {
			[]string{"m1", "m2"}, works(reporting(t, "m1", "False"), held(behind("m2"))), Circumstances{},
			"False", failed + ": m1: message of m1; m2: the present version is not applied, dispatching is suspended"},
		"a cluster that is suspended and not wanted is not suspended only": {
			[]string{"m1"}, works(applied("m1"), held(behind("m2"))), Circumstances{},
			"False", failed + ": m2: chosen no more, the Work is still there"},
		"what is held back is not what is wanted": {
			[]string{"m1", "m2"}, works(applied("m1"), held(behind("m2"))), Circumstances{},
			"False", "Dispatching is suspended for m2: the present version is not applied"},
		"suspension of all clusters names them together": {
			[]string{"m1", "m2"}, works(held(behind("m2")), held(behind("m1"))), Circumstances{},
			"False", "Dispatching is suspended for m1, m2: the present version is not applied"},
		"what is held back from the beginning is named": {
			[]string{"m1"}, works(held(reporting(t, "m1", ""))), Circumstances{}, "False", "Dispatching is suspended for m1: not applied"},
		"a cluster that others wait for is named as long as a Work is there": {
			[]string{"m2"}, works(leaving), Circumstances{Purged: purged}, "False",
			failed + ": m1: evicted with purge mode Directly, so no other cluster gets changes before the copy there is gone; m2: there is no Work yet"},
		"a cluster that others wait for may be out of reach": {
			[]string{"m2"}, works(leaving, applied("m2")), Circumstances{Purged: purged, Unready: down("m1")}, "False",
			failed + ": m1: evicted with purge mode Directly, so no other cluster gets changes before the copy there is gone; the cluster is not ready since 2030-01-01T12:00:00Z"},
		"a cluster that is empty keeps nobody waiting": {
			[]string{"m2"}, works(applied("m2")), Circumstances{Purged: purged}, "True", all},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := metav1.Condition{
				Type: "FullyApplied", Status: tc.want, ObservedGeneration: 4, Reason: "FullyAppliedSuccess", Message: tc.message,
			}
			if tc.want == "False" {
				want.Reason = "FullyAppliedFailed"
			}
			got := Gather(tc.works, webReference, tc.circumstances).FullyApplied(sets.New(tc.expected...), 4)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManyFailuresFitIntoAMessage(t *testing.T) {
	expected, unrendered := sets.New[string](), map[string]string{}
	for i := range 300 {
		name := fmt.Sprintf("member-%03d", i)
		expected.Insert(name)
		if i < 100 {
			unrendered[name] = name + strings.Repeat(" is out of luck", 20)
		}
	}
	got := Gather(nil, webReference, Circumstances{Unrendered: unrendered}).FullyApplied(expected, 1).Message
	if len(got) > conditions.MaxMessageBytes {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if !strings.Contains(got, ": member-000: member-000 is out of luck") || !strings.HasSuffix(got, "; and 296 more clusters") {
		t.Errorf("message = %s", got)
	}
	got = Gather(nil, webReference, Circumstances{}).FullyApplied(expected, 1).Message
	if !strings.HasSuffix(got, "member-008, member-009, 290 more: there is no Work yet") {
		t.Errorf("message = %s", got)
	}
}

func TestTheConditionDoesNotDependOnTheOrderOfWorks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var works []*workv1alpha1.Work
		expected := sets.New[string]()
		for i := range rapid.IntRange(0, 20).Draw(rt, "clusters") {
			cluster := fmt.Sprintf("m%d", i)
			expected.Insert(cluster)
			status := metav1.ConditionStatus(rapid.SampledFrom([]string{"", "True", "False"}).Draw(rt, cluster))
			works = append(works, reporting(t, cluster, status))
		}
		want := Gather(works, webReference, Circumstances{}).FullyApplied(expected, 1)
		got := Gather(rapid.Permutation(works).Draw(rt, "order"), webReference, Circumstances{}).FullyApplied(expected, 1)
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("condition (-want +got):\n%s", diff)
		}
		if len(got.Message) > conditions.MaxMessageBytes {
			rt.Errorf("the message has %d bytes", len(got.Message))
		}
	})
}

func TestOnlyClustersThatWillFollowAreWaitedFor(t *testing.T) {
	behind := reporting(t, "m1", "True")
	behind.Generation, behind.Status.Conditions[0].ObservedGeneration = 2, 1
	for name, tc := range map[string]struct {
		expected      string
		circumstances Circumstances
		want          bool
	}{
		"a cluster that gets the new state": {"m1", Circumstances{}, true},
		"a cluster that is lost":            {"m1", Circumstances{Unready: down("m1")}, false},
		"a cluster that is chosen no more":  {"m2", Circumstances{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			account := Gather([]*workv1alpha1.Work{behind}, webReference, tc.circumstances)
			if got := account.Behind(sets.New(tc.expected)); got != tc.want {
				t.Errorf("Behind = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAClusterToWhichChangesAreHeldBackIsWaitedForUntilThatIsSeen(t *testing.T) {
	held := reporting(t, "m1", "True")
	held.Generation, held.Status.Conditions[0].ObservedGeneration = 3, 1
	held.Spec.SuspendDispatching = new(true)
	behind := func() bool {
		return Gather([]*workv1alpha1.Work{held}, webReference, Circumstances{}).Behind(sets.New("m1"))
	}
	if !behind() {
		t.Error("nobody waits for the first answer")
	}
	held.Status.Conditions = append(held.Status.Conditions, metav1.Condition{Type: "Dispatching", Status: "False", ObservedGeneration: 2})
	if !behind() {
		t.Error("nobody waits for the answer to the newest state")
	}
	held.Status.Conditions[1].ObservedGeneration = 3
	if behind() {
		t.Error("a cluster that stays behind is waited for")
	}
}

func TestALoneCauseIsToldWhole(t *testing.T) {
	cause := "Deployment shop/web: applying OverridePolicy shop/pin-the-registry-of-the-mirror, spec.overrideRules[0].overriders.plaintext[2] " +
		`at "/spec/template/spec/containers/0/livenessProbe/httpGet/port": there is no such field; use the operator add, or name a field that the template has`
	condition := func(causes map[string]string) string {
		return Gather(nil, webReference, Circumstances{Unrendered: causes}).FullyApplied(sets.New("m1", "m2"), 1).Message
	}
	if got := condition(map[string]string{"m1": cause, "m2": cause}); !strings.HasSuffix(got, ": m1, m2: "+cause) {
		t.Errorf("message = %s", got)
	}
	long := map[string]string{}
	for i := range 20 {
		long[fmt.Sprintf("%02d-%s", i, strings.Repeat("x", 60))] = strings.Repeat(cause, 5)
	}
	got := Gather(nil, webReference, Circumstances{Unrendered: long}).FullyApplied(sets.KeySet(long), 1).Message
	if len(got) > conditions.MaxMessageBytes || !strings.Contains(got, "10 more: Deployment shop/web: applying") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if got := condition(map[string]string{"m1": cause}); len(got) > 500 || !strings.Contains(got, "m2: there is no Work yet") {
		t.Errorf("message = %s", got)
	}
}
