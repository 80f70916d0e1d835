package work

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

var webReference = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}

func webManifestStatus(text string) workv1alpha1.ManifestStatus {
	return workv1alpha1.ManifestStatus{
		Identifier: workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		Status:     &runtime.RawExtension{Raw: []byte(text)}, Health: workv1alpha1.ResourceHealthy,
	}
}

// workWithStatus returns a cluster's Work. applied is the status of its condition Applied. If it is
// empty, the Work does not have this condition.
func workWithStatus(t *testing.T, cluster string, applied metav1.ConditionStatus, statuses ...workv1alpha1.ManifestStatus) *workv1alpha1.Work {
	t.Helper()
	result := renderedWork(t, nil)
	result.Namespace = ExecutionNamespace(cluster)
	if applied != "" {
		result.Status.Conditions = []metav1.Condition{{Type: "Applied", Status: applied, Message: "message of " + cluster}}
	}
	result.Status.ManifestStatuses = statuses
	return result
}

func TestAggregate(t *testing.T) {
	other := webManifestStatus(`{}`)
	other.Identifier.Name = "other"
	outside := webManifestStatus(`{}`)
	outside.Identifier.Ordinal = 1
	silent := webManifestStatus(`{}`)
	silent.Status, silent.Health = nil, ""
	terminating := workWithStatus(t, "m0", "True")
	terminating.DeletionTimestamp = &metav1.Time{}
	astray := workWithStatus(t, "m0", "True")
	astray.Namespace = "default"

	tests := map[string]struct {
		works []*workv1alpha1.Work
		want  []workv1alpha2.AggregatedStatusItem
	}{
		"no Works, no items": {want: []workv1alpha2.AggregatedStatusItem{}},
		"no condition yet": {
			[]*workv1alpha1.Work{workWithStatus(t, "m1", "", webManifestStatus(`{}`))},
			[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Health: "Unknown"}},
		},
		"not applied: a message but no status": {
			[]*workv1alpha1.Work{workWithStatus(t, "m1", "False", webManifestStatus(`{}`))},
			[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", AppliedMessage: "message of m1", Health: "Unknown"}},
		},
		"applied, no status reported": {
			[]*workv1alpha1.Work{workWithStatus(t, "m1", "True")},
			[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true, Health: "Unknown"}},
		},
		"applied and reported": {
			[]*workv1alpha1.Work{workWithStatus(t, "m1", "True", other, webManifestStatus(`{"replicas":2}`))},
			[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true, Health: "Healthy", Status: &runtime.RawExtension{Raw: []byte(`{"replicas":2}`)}}},
		},
		"a status without health is Unknown": {
			[]*workv1alpha1.Work{workWithStatus(t, "m1", "True", silent)},
			[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true, Health: "Unknown"}},
		},
		"a Work that does not hold the template is Unknown": {
			[]*workv1alpha1.Work{workWithStatus(t, "m1", "True", other, outside)},
			[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true, Health: "Unknown"}},
		},
		"sorted by cluster, without Works in deletion or in other namespaces": {
			[]*workv1alpha1.Work{workWithStatus(t, "m2", "True"), terminating, astray, workWithStatus(t, "m10", "True"), workWithStatus(t, "m1", "True")},
			[]workv1alpha2.AggregatedStatusItem{
				{ClusterName: "m1", Applied: true, Health: "Unknown"}, {ClusterName: "m10", Applied: true, Health: "Unknown"},
				{ClusterName: "m2", Applied: true, Health: "Unknown"},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Aggregate(tc.works, webReference, AggregateOptions{}).Items); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAggregationSizeLimit checks that a large status from one agent does not remove other clusters'
// statuses.
func TestAggregationSizeLimit(t *testing.T) {
	large := func(bytes int) workv1alpha1.ManifestStatus {
		return webManifestStatus(`{"replicas":2,"log":"` + strings.Repeat("x", bytes) + `"}`)
	}
	many := func(clusters int, of func(cluster string) *workv1alpha1.Work) []*workv1alpha1.Work {
		var works []*workv1alpha1.Work
		for i := range clusters {
			works = append(works, of(fmt.Sprintf("m%04d", i)))
		}
		return works
	}
	for name, tc := range map[string]struct {
		works []*workv1alpha1.Work
		// whole is true if nothing needs to be truncated.
		whole bool
	}{
		"one status as large as etcd accepts": {works: []*workv1alpha1.Work{
			workWithStatus(t, "m1", "True", large(1400<<10)), workWithStatus(t, "m2", "True", webManifestStatus(`{"replicas":2}`)),
		}},
		"many statuses within the limit": {works: many(50, func(cluster string) *workv1alpha1.Work {
			return workWithStatus(t, cluster, "True", large(MaxStatusBytes-100))
		}), whole: true},
		"too many statuses within the limit": {works: many(150, func(cluster string) *workv1alpha1.Work {
			return workWithStatus(t, cluster, "True", large(MaxStatusBytes-100))
		})},
		"thousands of clusters": {works: many(3000, func(cluster string) *workv1alpha1.Work {
			return workWithStatus(t, cluster, "True", large(1000))
		})},
		"very long messages": {works: many(100, func(cluster string) *workv1alpha1.Work {
			of := workWithStatus(t, cluster, "False")
			of.Status.Conditions[0].Message = strings.Repeat("é", 16000)
			return of
		})},
	} {
		t.Run(name, func(t *testing.T) {
			items := Aggregate(tc.works, webReference, AggregateOptions{}).Items
			total, cut := 0, 0
			for _, item := range items {
				total += len(rawStatus(item.Status)) + len(item.AppliedMessage)
				if item.Applied && !strings.Contains(string(rawStatus(item.Status)), `"replicas":2`) {
					t.Fatalf("cluster %s lost its counts: %s", item.ClusterName, rawStatus(item.Status))
				}
				if item.Applied && !strings.Contains(string(rawStatus(item.Status)), "log") && item.AppliedMessage == "" && name != "one status as large as etcd accepts" {
					t.Fatalf("cluster %s has no message that its status was cut", item.ClusterName)
				}
				if !utf8.ValidString(item.AppliedMessage) {
					t.Fatalf("cluster %s: a rune was split", item.ClusterName)
				}
				if item.AppliedMessage != "" {
					cut++
				}
			}
			if total > MaxAggregationBytes || (cut == 0) != tc.whole {
				t.Errorf("%d bytes of %d, %d of %d clusters have a message", total, MaxAggregationBytes, cut, len(items))
			}
		})
	}
}

func TestAggregateSuspendedClusters(t *testing.T) {
	suspended := func(applied metav1.ConditionStatus, observed int64) *workv1alpha1.Work {
		of := workWithStatus(t, "m1", applied)
		of.Generation, of.Spec.SuspendDispatching = 2, new(true)
		if applied != "" {
			of.Status.Conditions[0].ObservedGeneration = observed
		}
		return of
	}
	tests := map[string]struct {
		work          *workv1alpha1.Work
		circumstances AggregateOptions
		applied       bool
		message       string
	}{
		"nothing was applied":                     {suspended("", 0), AggregateOptions{}, false, "not applied, dispatching is suspended"},
		"an earlier version was applied":          {suspended("True", 1), AggregateOptions{}, true, "the current version is not applied, dispatching is suspended"},
		"the current version was applied before":  {suspended("True", 2), AggregateOptions{}, true, ""},
		"the member rejected the manifest before": {suspended("False", 1), AggregateOptions{}, false, "message of m1"},
		"nothing was applied, cluster not ready": {
			suspended("", 0), AggregateOptions{NotReadySince: notReadySinceNoon("m1")}, false, "not applied, dispatching is suspended"},
		"a cluster that is not ready keeps its old status": {
			suspended("True", 1), AggregateOptions{NotReadySince: notReadySinceNoon("m1")}, true, "status as of 2030-01-01T12:00:00Z: cluster m1 is not ready since then"},
		"the current template could not be rendered": {
			suspended("True", 1), AggregateOptions{RenderErrors: map[string]string{"m1": "no such path"}}, false, "no such path"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: tc.applied, AppliedMessage: tc.message, Health: "Unknown"}}
			if diff := cmp.Diff(want, Aggregate([]*workv1alpha1.Work{tc.work}, webReference, tc.circumstances).Items); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSameItems(t *testing.T) {
	item := func(status string) []workv1alpha2.AggregatedStatusItem {
		return []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: &runtime.RawExtension{Raw: []byte(status)}}}
	}
	if !EqualStatusItems(item(`{"a":1,"b":2}`), item(`{"b": 2, "a": 1}`)) {
		t.Error("the layout of a status makes a difference")
	}
	none := []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1"}}
	for name, other := range map[string][]workv1alpha2.AggregatedStatusItem{
		"another status": item(`{"a":2}`), "no status": none, "no item": nil,
	} {
		if EqualStatusItems(item(`{"a":1}`), other) {
			t.Errorf("%s makes no difference", name)
		}
	}
	if !EqualStatusItems(none, none) {
		t.Error("empty lists differ")
	}
}

// notReadySinceNoon returns a function that reports that the given clusters became not ready at noon.
func notReadySinceNoon(clusters ...string) func(string) time.Time {
	return func(cluster string) time.Time {
		if slices.Contains(clusters, cluster) {
			return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
		}
		return time.Time{}
	}
}

func TestAggregateNotReadyAndUnrenderedClusters(t *testing.T) {
	reported := func(cluster, message string, applied bool) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{
			ClusterName: cluster, Applied: applied, AppliedMessage: message, Health: "Healthy",
			Status: &runtime.RawExtension{Raw: []byte(`{"replicas":2}`)},
		}
	}
	served := func(cluster string) *workv1alpha1.Work {
		return workWithStatus(t, cluster, "True", webManifestStatus(`{"replicas":2}`))
	}
	tests := map[string]struct {
		works         []*workv1alpha1.Work
		circumstances AggregateOptions
		want          []workv1alpha2.AggregatedStatusItem
	}{
		"a cluster that is not ready keeps its last status, with its time": {
			[]*workv1alpha1.Work{served("m1"), served("m2")}, AggregateOptions{NotReadySince: notReadySinceNoon("m1")},
			[]workv1alpha2.AggregatedStatusItem{
				reported("m1", "status as of 2030-01-01T12:00:00Z: cluster m1 is not ready since then", true), reported("m2", "", true),
			},
		},
		"a cluster that was not ready before its Work was applied": {
			[]*workv1alpha1.Work{workWithStatus(t, "m1", "")}, AggregateOptions{NotReadySince: notReadySinceNoon("m1")},
			[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", AppliedMessage: "cluster m1 is not ready since 2030-01-01T12:00:00Z", Health: "Unknown"}},
		},
		"a rejection wins over a later loss of the cluster": {
			[]*workv1alpha1.Work{workWithStatus(t, "m1", "False")}, AggregateOptions{NotReadySince: notReadySinceNoon("m1")},
			[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", AppliedMessage: "message of m1", Health: "Unknown"}},
		},
		"a cluster without a Work shows the render error": {
			[]*workv1alpha1.Work{served("m2")}, AggregateOptions{RenderErrors: map[string]string{"m3": "no such path", "m1": "too many"}},
			[]workv1alpha2.AggregatedStatusItem{
				{ClusterName: "m1", AppliedMessage: "too many", Health: "Unknown"}, reported("m2", "", true),
				{ClusterName: "m3", AppliedMessage: "no such path", Health: "Unknown"},
			},
		},
		"an outdated Work is not applied, but its status still counts": {
			[]*workv1alpha1.Work{served("m1")}, AggregateOptions{RenderErrors: map[string]string{"m1": "no such path"}},
			[]workv1alpha2.AggregatedStatusItem{reported("m1", "no such path", false)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			unrendered := maps.Clone(tc.circumstances.RenderErrors)
			if diff := cmp.Diff(tc.want, Aggregate(tc.works, webReference, tc.circumstances).Items); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(unrendered, tc.circumstances.RenderErrors); diff != "" {
				t.Errorf("the input was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHasUnappliedGeneration(t *testing.T) {
	of := func(status metav1.ConditionStatus, observed int64, change func(*workv1alpha1.Work)) *workv1alpha1.Work {
		w := workWithStatus(t, "m1", status)
		w.Generation = 2
		w.Spec.SuspendDispatching = nil
		if status != "" {
			w.Status.Conditions[0].ObservedGeneration = observed
		}
		if change != nil {
			change(w)
		}
		return w
	}
	for name, tc := range map[string]struct {
		work *workv1alpha1.Work
		want bool
	}{
		"an earlier generation was applied":       {of("True", 1, nil), true},
		"the current generation was applied":      {of("True", 2, nil), false},
		"nothing was ever applied":                {of("", 0, nil), false},
		"an earlier generation was rejected":      {of("False", 1, nil), false},
		"a condition without observed generation": {of("True", 0, nil), false},
		"dispatching is suspended": {of("True", 1, func(w *workv1alpha1.Work) {
			w.Spec.SuspendDispatching = new(true)
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := HasUnappliedGeneration(tc.work); got != tc.want {
				t.Errorf("Behind = %v, want %v", got, tc.want)
			}
		})
	}
}
