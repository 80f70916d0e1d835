package work

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

func TestFullyAppliedCondition(t *testing.T) {
	applied := func(cluster string) *workv1alpha1.Work { return workWithStatus(t, cluster, "True") }
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
		circumstances AggregateOptions
		want          metav1.ConditionStatus
		message       string
	}{
		"all clusters have the template":        {[]string{"m1", "m2"}, works(applied("m1"), applied("m2")), AggregateOptions{}, "True", all},
		"no cluster is expected":                {nil, nil, AggregateOptions{}, "False", failed + ": no cluster is chosen"},
		"no cluster is expected for 0 replicas": {nil, nil, AggregateOptions{WantsNoCopy: true}, "True", all + "; 0 replicas are wanted, so no cluster has a copy"},
		"a cluster still has the template that was scaled to 0": {
			nil, works(applied("m1")), AggregateOptions{WantsNoCopy: true}, "False", failed + ": m1: no longer chosen, but its Work still exists"},
		"a cluster without a Work":       {[]string{"m1", "m2"}, works(applied("m1")), AggregateOptions{}, "False", failed + ": m2: there is no Work yet"},
		"a cluster without a condition":  {[]string{"m1"}, works(workWithStatus(t, "m1", "")), AggregateOptions{}, "False", failed + ": m1: not applied yet"},
		"a cluster that is not expected": {[]string{"m1"}, works(applied("m1"), applied("m2")), AggregateOptions{}, "False", failed + ": m2: no longer chosen, but its Work still exists"},
		"clusters with failures are named in order, each with its cause": {
			[]string{"m1", "m2", "m3"}, works(workWithStatus(t, "m3", "False"), applied("m2"), workWithStatus(t, "m1", "False")), AggregateOptions{},
			"False", failed + ": m1: message of m1; m3: message of m3"},
		"equal causes are grouped": {
			[]string{"m1", "m2", "m3"}, works(workWithStatus(t, "m2", "False")), AggregateOptions{},
			"False", failed + ": m1, m3: there is no Work yet; m2: message of m2"},
		"another cluster has the template": {
			[]string{"m1"}, works(applied("m2")), AggregateOptions{},
			"False", failed + ": m1: there is no Work yet; m2: no longer chosen, but its Work still exists"},
		"a Work that could not be rendered": {
			[]string{"m1"}, nil, AggregateOptions{RenderErrors: map[string]string{"m1": "no such path"}}, "False", failed + ": m1: no such path"},
		"an earlier generation is applied": {
			[]string{"m1"}, works(behind("m1")), AggregateOptions{}, "False", failed + ": m1: the current version is not applied yet"},
		"an earlier generation is applied, cluster not ready": {
			[]string{"m1"}, works(behind("m1")), AggregateOptions{NotReadySince: notReadySinceNoon("m1")},
			"False", failed + ": m1: the current version is not applied, the cluster is not ready since 2030-01-01T12:00:00Z"},
		"clusters that are not ready are named although they have the template": {
			[]string{"m1", "m2"}, works(applied("m1"), applied("m2")), AggregateOptions{NotReadySince: notReadySinceNoon("m2")},
			"True", all + "; m2: the status is old, the cluster is not ready"},
		"a cluster that rejects the credentials is named with the cause": {
			[]string{"m1", "m2", "m3", "m4"}, works(applied("m1"), behind("m2"), workWithStatus(t, "m3", "False")), AggregateOptions{
				NotReadySince: notReadySinceNoon("m2"), CredentialsProblem: rejectedBy("m2", "m3", "m4"),
			}, "False", failed + ": m2: the current version is not applied, the cluster is not ready since 2030-01-01T12:00:00Z; the cluster rejects the token; " +
				"m3: message of m3; the cluster rejects the token; m4: there is no Work yet; the cluster rejects the token"},
		"a cluster that rejects the credentials later is named although it has the template": {
			[]string{"m1", "m2"}, works(applied("m1"), applied("m2")), AggregateOptions{NotReadySince: notReadySinceNoon("m2"), CredentialsProblem: rejectedBy("m2")},
			"True", all + "; m2: the status is old, the cluster rejects the token"},
		"suspended clusters are named": {
			[]string{"m1", "m2"}, works(applied("m1"), held(applied("m2"))), AggregateOptions{}, "True", all + "; m2: dispatching is suspended"},
		"a suspension does not hide a rejection": {
			[]string{"m1", "m2"}, works(applied("m1"), held(workWithStatus(t, "m2", "False"))), AggregateOptions{}, "False", failed + ": m2: message of m2"},
		"a suspension and a rejection are both named": {
			[]string{"m1", "m2"}, works(workWithStatus(t, "m1", "False"), held(behind("m2"))), AggregateOptions{},
			"False", failed + ": m1: message of m1; m2: the current version is not applied, dispatching is suspended"},
		"a suspended cluster that is not expected": {
			[]string{"m1"}, works(applied("m1"), held(behind("m2"))), AggregateOptions{},
			"False", failed + ": m2: no longer chosen, but its Work still exists"},
		"one suspended cluster with an earlier generation": {
			[]string{"m1", "m2"}, works(applied("m1"), held(behind("m2"))), AggregateOptions{},
			"False", "Dispatching is suspended for m2: the current version is not applied"},
		"all clusters suspended": {
			[]string{"m1", "m2"}, works(held(behind("m2")), held(behind("m1"))), AggregateOptions{},
			"False", "Dispatching is suspended for m1, m2: the current version is not applied"},
		"suspended from the beginning": {
			[]string{"m1"}, works(held(workWithStatus(t, "m1", ""))), AggregateOptions{}, "False", "Dispatching is suspended for m1: not applied"},
		"a purged cluster is named as long as its Work exists": {
			[]string{"m2"}, works(leaving), AggregateOptions{PurgedClusters: purged}, "False",
			failed + ": m1: evicted with purge mode Directly, so no other cluster gets changes before the copy there is gone; m2: there is no Work yet"},
		"a purged cluster that is not ready": {
			[]string{"m2"}, works(leaving, applied("m2")), AggregateOptions{PurgedClusters: purged, NotReadySince: notReadySinceNoon("m1")}, "False",
			failed + ": m1: evicted with purge mode Directly, so no other cluster gets changes before the copy there is gone; the cluster is not ready since 2030-01-01T12:00:00Z"},
		"an empty purged cluster is not named": {
			[]string{"m2"}, works(applied("m2")), AggregateOptions{PurgedClusters: purged}, "True", all},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := metav1.Condition{
				Type: "FullyApplied", Status: tc.want, ObservedGeneration: 4, Reason: "FullyAppliedSuccess", Message: tc.message,
			}
			if tc.want == "False" {
				want.Reason = "FullyAppliedFailed"
			}
			got := Aggregate(tc.works, webReference, tc.circumstances).FullyAppliedCondition(sets.New(tc.expected...), 4)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFullyAppliedMessageSize(t *testing.T) {
	expected, unrendered := sets.New[string](), map[string]string{}
	for i := range 300 {
		name := fmt.Sprintf("member-%03d", i)
		expected.Insert(name)
		if i < 100 {
			unrendered[name] = name + strings.Repeat(" is out of luck", 20)
		}
	}
	got := Aggregate(nil, webReference, AggregateOptions{RenderErrors: unrendered}).FullyAppliedCondition(expected, 1).Message
	if len(got) > conditions.MaxMessageBytes {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if !strings.Contains(got, ": member-000: member-000 is out of luck") || !strings.HasSuffix(got, "; and 296 more clusters") {
		t.Errorf("message = %s", got)
	}
	got = Aggregate(nil, webReference, AggregateOptions{}).FullyAppliedCondition(expected, 1).Message
	if !strings.HasSuffix(got, "member-008, member-009, 290 more: there is no Work yet") {
		t.Errorf("message = %s", got)
	}
}

func TestFullyAppliedIgnoresWorkOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var works []*workv1alpha1.Work
		expected := sets.New[string]()
		for i := range rapid.IntRange(0, 20).Draw(rt, "clusters") {
			cluster := fmt.Sprintf("m%d", i)
			expected.Insert(cluster)
			status := metav1.ConditionStatus(rapid.SampledFrom([]string{"", "True", "False"}).Draw(rt, cluster))
			works = append(works, workWithStatus(t, cluster, status))
		}
		want := Aggregate(works, webReference, AggregateOptions{}).FullyAppliedCondition(expected, 1)
		got := Aggregate(rapid.Permutation(works).Draw(rt, "order"), webReference, AggregateOptions{}).FullyAppliedCondition(expected, 1)
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("condition (-want +got):\n%s", diff)
		}
		if len(got.Message) > conditions.MaxMessageBytes {
			rt.Errorf("the message has %d bytes", len(got.Message))
		}
	})
}

func TestHasPendingApply(t *testing.T) {
	behind := workWithStatus(t, "m1", "True")
	behind.Generation, behind.Status.Conditions[0].ObservedGeneration = 2, 1
	for name, tc := range map[string]struct {
		expected      string
		circumstances AggregateOptions
		want          bool
	}{
		"a cluster that is ready":            {"m1", AggregateOptions{}, true},
		"a cluster that is not ready":        {"m1", AggregateOptions{NotReadySince: notReadySinceNoon("m1")}, false},
		"a cluster that is no longer chosen": {"m2", AggregateOptions{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			account := Aggregate([]*workv1alpha1.Work{behind}, webReference, tc.circumstances)
			if got := account.HasPendingApply(sets.New(tc.expected)); got != tc.want {
				t.Errorf("Behind = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestHasPendingApplyWhileSuspended(t *testing.T) {
	held := workWithStatus(t, "m1", "True")
	held.Generation, held.Status.Conditions[0].ObservedGeneration = 3, 1
	held.Spec.SuspendDispatching = new(true)
	behind := func() bool {
		return Aggregate([]*workv1alpha1.Work{held}, webReference, AggregateOptions{}).HasPendingApply(sets.New("m1"))
	}
	if !behind() {
		t.Error("no pending apply before the first condition")
	}
	held.Status.Conditions = append(held.Status.Conditions, metav1.Condition{Type: "Dispatching", Status: "False", ObservedGeneration: 2})
	if !behind() {
		t.Error("no pending apply before the condition of the current generation")
	}
	held.Status.Conditions[1].ObservedGeneration = 3
	if behind() {
		t.Error("a suspended cluster counts as pending")
	}
}

func TestSingleFailureCauseIsNotShortened(t *testing.T) {
	cause := "Deployment shop/web: applying OverridePolicy shop/pin-the-registry-of-the-mirror, spec.overrideRules[0].overriders.plaintext[2] " +
		`at "/spec/template/spec/containers/0/livenessProbe/httpGet/port": there is no such field; use the operator add, or name a field that the template has`
	condition := func(causes map[string]string) string {
		return Aggregate(nil, webReference, AggregateOptions{RenderErrors: causes}).FullyAppliedCondition(sets.New("m1", "m2"), 1).Message
	}
	if got := condition(map[string]string{"m1": cause, "m2": cause}); !strings.HasSuffix(got, ": m1, m2: "+cause) {
		t.Errorf("message = %s", got)
	}
	long := map[string]string{}
	for i := range 20 {
		long[fmt.Sprintf("%02d-%s", i, strings.Repeat("x", 60))] = strings.Repeat(cause, 5)
	}
	got := Aggregate(nil, webReference, AggregateOptions{RenderErrors: long}).FullyAppliedCondition(sets.KeySet(long), 1).Message
	if len(got) > conditions.MaxMessageBytes || !strings.Contains(got, "10 more: Deployment shop/web: applying") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if got := condition(map[string]string{"m1": cause}); len(got) > 500 || !strings.Contains(got, "m2: there is no Work yet") {
		t.Errorf("message = %s", got)
	}
}

// rejectedBy returns a function that reports that the given clusters reject the credentials.
func rejectedBy(clusters ...string) func(string) string {
	return func(cluster string) string {
		if slices.Contains(clusters, cluster) {
			return "the cluster rejects the token"
		}
		return ""
	}
}
