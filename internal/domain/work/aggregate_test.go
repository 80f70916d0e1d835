package work

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

var webReference = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}

func webStatus(text string) workv1alpha1.ManifestStatus {
	return workv1alpha1.ManifestStatus{
		Identifier: workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		Status:     &runtime.RawExtension{Raw: []byte(text)}, Health: workv1alpha1.ResourceHealthy,
	}
}

// reporting is the Work of a cluster with the status of Applied, none if empty.
func reporting(t *testing.T, cluster string, applied metav1.ConditionStatus, statuses ...workv1alpha1.ManifestStatus) *workv1alpha1.Work {
	t.Helper()
	result := rendered(t, nil)
	result.Namespace = ExecutionNamespace(cluster)
	if applied != "" {
		result.Status.Conditions = []metav1.Condition{{Type: "Applied", Status: applied, Message: "message of " + cluster}}
	}
	result.Status.ManifestStatuses = statuses
	return result
}

func TestAggregateItems(t *testing.T) {
	other := webStatus(`{}`)
	other.Identifier.Name = "other"
	outside := webStatus(`{}`)
	outside.Identifier.Ordinal = 1
	silent := webStatus(`{}`)
	silent.Status, silent.Health = nil, ""
	terminating := reporting(t, "m0", "True")
	terminating.DeletionTimestamp = &metav1.Time{}
	astray := reporting(t, "m0", "True")
	astray.Namespace = "default"

	tests := map[string]struct {
		works []*workv1alpha1.Work
		want  []workv1alpha2.AggregatedStatusItem
	}{
		"no Works, no items": {want: []workv1alpha2.AggregatedStatusItem{}},
		"nothing known yet": {
			[]*workv1alpha1.Work{reporting(t, "m1", "", webStatus(`{}`))},
			[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Health: "Unknown"}},
		},
		"not applied: the message, but no status": {
			[]*workv1alpha1.Work{reporting(t, "m1", "False", webStatus(`{}`))},
			[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", AppliedMessage: "message of m1", Health: "Unknown"}},
		},
		"applied, nothing reported": {
			[]*workv1alpha1.Work{reporting(t, "m1", "True")},
			[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true, Health: "Unknown"}},
		},
		"applied and reported": {
			[]*workv1alpha1.Work{reporting(t, "m1", "True", other, webStatus(`{"replicas":2}`))},
			[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true, Health: "Healthy", Status: &runtime.RawExtension{Raw: []byte(`{"replicas":2}`)}}},
		},
		"a report without health is Unknown": {
			[]*workv1alpha1.Work{reporting(t, "m1", "True", silent)},
			[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true, Health: "Unknown"}},
		},
		"a Work that does not hold the template is Unknown": {
			[]*workv1alpha1.Work{reporting(t, "m1", "True", other, outside)},
			[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true, Health: "Unknown"}},
		},
		"sorted by cluster, without Works in deletion or elsewhere": {
			[]*workv1alpha1.Work{reporting(t, "m2", "True"), terminating, astray, reporting(t, "m10", "True"), reporting(t, "m1", "True")},
			[]workv1alpha2.AggregatedStatusItem{
				{ClusterName: "m1", Applied: true, Health: "Unknown"}, {ClusterName: "m10", Applied: true, Health: "Unknown"},
				{ClusterName: "m2", Applied: true, Health: "Unknown"},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, AggregateItems(tc.works, webReference)); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSameItems(t *testing.T) {
	item := func(status string) []workv1alpha2.AggregatedStatusItem {
		return []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: &runtime.RawExtension{Raw: []byte(status)}}}
	}
	if !SameItems(item(`{"a":1,"b":2}`), item(`{"b": 2, "a": 1}`)) {
		t.Error("the layout of a status makes a difference")
	}
	none := []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1"}}
	for name, other := range map[string][]workv1alpha2.AggregatedStatusItem{
		"another status": item(`{"a":2}`), "no status": none, "no item": nil,
	} {
		if SameItems(item(`{"a":1}`), other) {
			t.Errorf("%s makes no difference", name)
		}
	}
	if !SameItems(none, none) {
		t.Error("nothing differs from nothing")
	}
}

func TestFullyApplied(t *testing.T) {
	item := func(cluster string, applied bool) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: applied}
	}
	tests := map[string]struct {
		expected []string
		items    []workv1alpha2.AggregatedStatusItem
		want     metav1.ConditionStatus
	}{
		"all have it":                  {[]string{"m1", "m2"}, []workv1alpha2.AggregatedStatusItem{item("m1", true), item("m2", true)}, "True"},
		"nothing is expected":          {nil, nil, "False"},
		"one has no Work yet":          {[]string{"m1", "m2"}, []workv1alpha2.AggregatedStatusItem{item("m1", true)}, "False"},
		"one refused it":               {[]string{"m1", "m2"}, []workv1alpha2.AggregatedStatusItem{item("m1", true), item("m2", false)}, "False"},
		"one has it without being due": {[]string{"m1"}, []workv1alpha2.AggregatedStatusItem{item("m1", true), item("m2", true)}, "False"},
		"another has it instead":       {[]string{"m1"}, []workv1alpha2.AggregatedStatusItem{item("m2", true)}, "False"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := metav1.Condition{
				Type: "FullyApplied", Status: tc.want, ObservedGeneration: 4,
				Reason: "FullyAppliedSuccess", Message: "All works have been successfully applied",
			}
			if tc.want == "False" {
				want.Reason = "FullyAppliedFailed"
				want.Message = "Failed to apply all works, see status.aggregatedStatus for details"
			}
			if diff := cmp.Diff(want, FullyApplied(sets.New(tc.expected...), tc.items, 4)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}
