package bindingstatus

import (
	"encoding/json"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func parseObject(content string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(content), &u.Object); err != nil {
		panic(err)
	}
	u.SetResourceVersion("7")
	return u
}

func TestStatusPatchHoldsOnlyChanges(t *testing.T) {
	cases := map[string]struct{ before, after, want string }{
		"the first status": {
			`{"spec":{}}`, `{"spec":{},"status":{"replicas":2}}`,
			`{"metadata":{"resourceVersion":"7"},"status":{"replicas":2}}`},
		"one counter of many": {
			`{"status":{"replicas":2,"readyReplicas":1}}`, `{"status":{"replicas":2,"readyReplicas":2}}`,
			`{"metadata":{"resourceVersion":"7"},"status":{"readyReplicas":2}}`},
		"a removed field": {
			`{"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}}`, `{"status":{"phase":"Bound"}}`,
			`{"metadata":{"resourceVersion":"7"},"status":{"capacity":null}}`},
		"a removed status": {
			`{"status":{"phase":"Bound"}}`, `{}`, `{"metadata":{"resourceVersion":"7"},"status":null}`},
		"a list is replaced whole": {
			`{"status":{"ingress":[{"ip":"1"}]}}`, `{"status":{"ingress":[{"ip":"1"},{"ip":"2"}]}}`,
			`{"metadata":{"resourceVersion":"7"},"status":{"ingress":[{"ip":"1"},{"ip":"2"}]}}`},
		"equal statuses cost no write":               {`{"status":{"replicas":2}}`, `{"status":{"replicas":2}}`, ``},
		"numbers of another type cost no write":      {`{"status":{"replicas":2}}`, `{"status":{"replicas":2.0}}`, ``},
		"the spec is not written":                    {`{"spec":{"replicas":1},"status":{}}`, `{"spec":{"replicas":2},"status":{}}`, ``},
		"a null for a missing field costs no write":  {`{"status":{"replicas":2}}`, `{"status":{"replicas":2,"active":null}}`, ``},
		"a null for a missing status costs no write": {`{}`, `{"status":null}`, ``},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := statusPatch(parseObject(tc.before), parseObject(tc.after))
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" {
				if got != nil {
					t.Errorf("patch = %s, want none", got)
				}
				return
			}
			if !jsonpatch.Equal(got, []byte(tc.want)) {
				t.Errorf("patch = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestSameObjectNeedsNoStatusPatch(t *testing.T) {
	same := parseObject(`{"status":{"replicas":2}}`)
	if got, err := statusPatch(same, same); got != nil || err != nil {
		t.Errorf("statusPatch = %s, %v; want nothing", got, err)
	}
}

func TestPatchedStatusNeedsNoSecondPatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawObject(t, "before")
		after := drawObject(t, "after")
		change, err := statusPatch(before, after)
		if err != nil {
			t.Fatal(err)
		}
		if change == nil {
			return
		}
		stored, err := json.Marshal(before.Object)
		if err != nil {
			t.Fatal(err)
		}
		patched, err := jsonpatch.MergePatch(stored, change)
		if err != nil {
			t.Fatal(err)
		}
		again, err := statusPatch(parseObject(string(patched)), after)
		if err != nil || again != nil {
			t.Errorf("after %s: second patch %s, %v", change, again, err)
		}
	})
}

func drawObject(t *rapid.T, label string) *unstructured.Unstructured {
	value := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Int64Range(0, 3), func(n int64) any { return n }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"x", "y"}), rapid.Int64Range(0, 2), 0, 2), func(m map[string]int64) any { return m }),
		rapid.Map(rapid.SliceOfN(rapid.Int64Range(0, 2), 0, 2), func(l []int64) any { return l }),
	)
	status := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), value, 0, 3).Draw(t, label)
	encoded, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		t.Fatal(err)
	}
	return parseObject(string(encoded))
}

func TestTargetsWithoutWorkHaveUnknownHealth(t *testing.T) {
	item := func(cluster string) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true, Status: &runtime.RawExtension{Raw: []byte(`{}`)}, Health: workv1alpha2.ResourceHealthy}
	}
	blank := func(cluster string) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: workv1alpha2.ResourceUnknown}
	}
	cases := map[string]struct {
		items   []workv1alpha2.AggregatedStatusItem
		targets []string
		want    []workv1alpha2.AggregatedStatusItem
	}{
		"no targets": {nil, nil, nil},
		"a target with a report is not repeated": {
			[]workv1alpha2.AggregatedStatusItem{item("m1")}, []string{"m1"}, []workv1alpha2.AggregatedStatusItem{item("m1")}},
		"missing targets are sorted by name": {
			[]workv1alpha2.AggregatedStatusItem{item("m2")}, []string{"m3", "m2", "m1"},
			[]workv1alpha2.AggregatedStatusItem{blank("m1"), item("m2"), blank("m3")}},
		"a cluster that is not a target any more still counts": {
			[]workv1alpha2.AggregatedStatusItem{item("m1")}, []string{"m2"},
			[]workv1alpha2.AggregatedStatusItem{item("m1"), blank("m2")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var targets []workv1alpha2.TargetCluster
			for _, cluster := range tc.targets {
				targets = append(targets, workv1alpha2.TargetCluster{Name: cluster})
			}
			given := len(tc.items)
			if diff := cmp.Diff(tc.want, withMissingTargets(tc.items, targets)); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
			if len(tc.items) != given {
				t.Error("the input items were changed")
			}
		})
	}
}

func TestStatusIsWrittenOnlyToTemplateOfBinding(t *testing.T) {
	template := parseObject(`{"metadata":{"uid":"1"}}`)
	for name, tc := range map[string]struct {
		reference workv1alpha2.ObjectReference
		want      bool
	}{
		"the same object":                 {workv1alpha2.ObjectReference{UID: "1"}, true},
		"a later object of the same name": {workv1alpha2.ObjectReference{UID: "0"}, false},
		"a binding without a UID":         {workv1alpha2.ObjectReference{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isTemplateOf(template, tc.reference); got != tc.want {
				t.Errorf("isFor = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestMergeStatusReportsChange(t *testing.T) {
	stored := func() *workv1alpha2.ResourceBindingStatus {
		return &workv1alpha2.ResourceBindingStatus{
			Conditions: []metav1.Condition{
				{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue},
				{Type: workv1alpha2.FullyApplied, Status: metav1.ConditionTrue, ObservedGeneration: 2},
			},
			AggregatedStatus: []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true, Status: &runtime.RawExtension{Raw: []byte(`{"a":1,"b":2}`)}}},
		}
	}
	item := func(raw string) []workv1alpha2.AggregatedStatusItem {
		return []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true, Status: &runtime.RawExtension{Raw: []byte(raw)}}}
	}
	later := metav1.NewTime(time.Unix(9, 0))
	applied := metav1.Condition{Type: workv1alpha2.FullyApplied, Status: metav1.ConditionTrue, ObservedGeneration: 2, LastTransitionTime: later}
	newer := applied
	newer.ObservedGeneration = 3
	cases := map[string]struct {
		items     []workv1alpha2.AggregatedStatusItem
		condition metav1.Condition
		want      bool
	}{
		"the same in another layout": {item(`{"b": 2, "a": 1}`), applied, false},
		"another status":             {item(`{"a":2}`), applied, true},
		"a newer generation":         {item(`{"a":1,"b":2}`), newer, true},
		"no items any more":          {nil, applied, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := stored()
			if got := mergeStatus(status, tc.items, tc.condition); got != tc.want {
				t.Errorf("merge = %v, want %v", got, tc.want)
			}
			if diff := cmp.Diff(stored().Conditions[0], status.Conditions[0]); diff != "" {
				t.Errorf("the scheduler's condition changed (-before +after):\n%s", diff)
			}
			if !tc.want {
				if diff := cmp.Diff(stored(), status); diff != "" {
					t.Errorf("the status changed nevertheless (-before +after):\n%s", diff)
				}
			}
			if mergeStatus(status, tc.items, tc.condition) {
				t.Error("merging the same again changed something")
			}
		})
	}
}

func TestIsOlder(t *testing.T) {
	for name, tc := range map[string]struct {
		version, than string
		want          bool
	}{
		"a lower number":                   {"99", "100", true},
		"the same":                         {"100", "100", false},
		"a higher number":                  {"101", "100", false},
		"no other version":                 {"1", "", false},
		"versions that cannot be compared": {"a", "b", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isOlder(tc.version, tc.than); got != tc.want {
				t.Errorf("older = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestKindsWithoutStatusExpire(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Plain"}
	added := time.Unix(0, 0)
	s := newKindsWithoutStatus()
	if s.has(kind, added) {
		t.Error("known before it was added")
	}
	s.add(kind, added)
	if !s.has(kind, added.Add(noStatusTTL-1)) {
		t.Error("expired too early")
	}
	if s.has(kind, added.Add(noStatusTTL)) {
		t.Error("not expired")
	}
}
