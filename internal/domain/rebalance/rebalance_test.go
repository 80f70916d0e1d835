package rebalance

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func deployment(name string) Workload {
	return Workload{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
}

func pending(name string) appsv1alpha1.ObservedWorkload {
	return appsv1alpha1.ObservedWorkload{Workload: deployment(name)}
}

func successful(name string) appsv1alpha1.ObservedWorkload {
	return appsv1alpha1.ObservedWorkload{Workload: deployment(name), Result: appsv1alpha1.RebalanceSuccessful}
}

func failed(name string) appsv1alpha1.ObservedWorkload {
	return appsv1alpha1.ObservedWorkload{
		Workload: deployment(name), Result: appsv1alpha1.RebalanceFailed, Reason: appsv1alpha1.RebalanceObjectNotFound,
	}
}

type entries = []appsv1alpha1.ObservedWorkload

// newRebalancer returns a rebalancer of the second generation that lists Deployments by name.
func newRebalancer(listed []string, observed entries) *appsv1alpha1.WorkloadRebalancer {
	created := &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{
		Name: "r", UID: "1", Generation: 2, CreationTimestamp: metav1.NewTime(noon),
	}}
	for _, name := range listed {
		created.Spec.Workloads = append(created.Spec.Workloads, deployment(name))
	}
	created.Status.ObservedWorkloads = observed
	return created
}

func TestObserve(t *testing.T) {
	tests := map[string]struct {
		listed   []string
		observed entries
		removed  string
		want     entries
	}{
		"new workloads have no result and are sorted":   {listed: []string{"b", "a"}, want: entries{pending("a"), pending("b")}},
		"a workload that is listed twice has one entry": {listed: []string{"a", "a"}, want: entries{pending("a")}},
		"listed workloads keep their results": {
			listed: []string{"a", "b"}, observed: entries{successful("a"), failed("b")}, want: entries{successful("a"), failed("b")},
		},
		"a removed workload stays only if it was rebalanced": {
			listed: []string{"d"}, observed: entries{successful("a"), failed("b"), pending("c")}, want: entries{successful("a"), pending("d")},
		},
		"a workload that returns to the spec is rebalanced again": {
			listed: []string{"a", "b"}, observed: entries{successful("a"), successful("b")},
			removed: `[{"apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":"a"}]`,
			want:    entries{pending("a"), successful("b")},
		},
		"a removed workload that stays removed keeps its result": {
			observed: entries{successful("a")},
			removed:  `[{"apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":"a"}]`,
			want:     entries{successful("a")},
		},
		"an invalid record of removed workloads is ignored": {
			listed: []string{"a"}, observed: entries{successful("a")}, removed: `{`, want: entries{successful("a")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rebalancer := newRebalancer(test.listed, test.observed)
			rebalancer.Annotations = map[string]string{appsv1alpha1.RemovedWorkloadsAnnotation: test.removed}
			if diff := cmp.Diff(test.want, Observe(rebalancer)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// managed returns a managed fields entry of the given time.
func managed(subresource, fields string, minutes int) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields),
		Time: new(metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))),
	}
}

func TestTriggerTime(t *testing.T) {
	const spec, annotations = `{"f:spec":{"f:workloads":{}}}`, `{"f:metadata":{"f:annotations":{}}}`
	tests := map[string]struct {
		generation int64
		managed    []metav1.ManagedFieldsEntry
		want       time.Duration
	}{
		"a new rebalancer triggers at its creation": {generation: 1, managed: []metav1.ManagedFieldsEntry{managed("", spec, 3)}},
		"a changed list triggers at the change":     {generation: 2, managed: []metav1.ManagedFieldsEntry{managed("", spec, 3)}, want: 3 * time.Minute},
		"changes of annotations and of the status do not count": {
			generation: 2, managed: []metav1.ManagedFieldsEntry{managed("", spec, 3), managed("", annotations, 5), managed("status", spec, 7)},
			want: 3 * time.Minute,
		},
		"the last of several changes counts": {
			generation: 3, managed: []metav1.ManagedFieldsEntry{managed("", spec, 9), managed("", spec, 3)}, want: 9 * time.Minute,
		},
		"without managed fields, the creation time is used": {generation: 2},
		"the trigger is never before the creation":          {generation: 2, managed: []metav1.ManagedFieldsEntry{managed("", spec, -3)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rebalancer := newRebalancer(nil, nil)
			rebalancer.Generation, rebalancer.ManagedFields = test.generation, test.managed
			if got := TriggerTime(rebalancer); !got.Time.Equal(noon.Add(test.want)) {
				t.Errorf("got %s", got.Time)
			}
		})
	}
}

func TestStatusFinishesOnce(t *testing.T) {
	later := noon.Add(time.Hour + 300*time.Millisecond)
	tests := map[string]struct {
		observed   entries
		finishedAt time.Time
		generation int64
		next       entries
		want       time.Time
	}{
		"a pending workload":                      {next: entries{pending("a"), successful("b")}},
		"the last result":                         {observed: entries{pending("a")}, generation: 2, next: entries{failed("a")}, want: later.Truncate(time.Second)},
		"nothing changed":                         {observed: entries{successful("a")}, finishedAt: noon, generation: 2, next: entries{successful("a")}, want: noon},
		"a change of the spec":                    {observed: entries{successful("a")}, finishedAt: noon, generation: 1, next: entries{successful("a")}, want: later.Truncate(time.Second)},
		"a new workload in a finished rebalancer": {observed: entries{successful("a")}, finishedAt: noon, generation: 1, next: entries{successful("a"), pending("b")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rebalancer := newRebalancer(nil, test.observed)
			rebalancer.Status.ObservedGeneration = test.generation
			if !test.finishedAt.IsZero() {
				rebalancer.Status.FinishTime = new(metav1.NewTime(test.finishedAt))
			}
			got := NewStatus(rebalancer, test.next, later)
			if got.ObservedGeneration != 2 {
				t.Errorf("observed generation %d", got.ObservedGeneration)
			}
			if (got.FinishTime == nil) != test.want.IsZero() || got.FinishTime != nil && !got.FinishTime.Time.Equal(test.want) {
				t.Errorf("finished at %v", got.FinishTime)
			}
		})
	}
}

func TestDeletionTime(t *testing.T) {
	tests := map[string]struct {
		ttl        *int32
		finished   bool
		generation int64
		want       time.Duration
		isSet      bool
	}{
		"without a time to live, it is kept":  {finished: true, generation: 2},
		"while it runs, it is kept":           {ttl: new(int32(0)), generation: 2},
		"after a change, it is kept":          {ttl: new(int32(0)), finished: true, generation: 1},
		"0 deletes it when it finishes":       {ttl: new(int32(0)), finished: true, generation: 2, isSet: true},
		"the time counts from its end":        {ttl: new(int32(90)), finished: true, generation: 2, want: 90 * time.Second, isSet: true},
		"the longest time does not overflow":  {ttl: new(int32(1<<31 - 1)), finished: true, generation: 2, want: (1<<31 - 1) * time.Second, isSet: true},
		"a negative time is over immediately": {ttl: new(int32(-5)), finished: true, generation: 2, want: -5 * time.Second, isSet: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rebalancer := newRebalancer(nil, nil)
			rebalancer.Spec.TTLSecondsAfterFinished, rebalancer.Status.ObservedGeneration = test.ttl, test.generation
			if test.finished {
				rebalancer.Status.FinishTime = new(metav1.NewTime(noon))
			}
			at, isSet := DeletionTime(rebalancer)
			if isSet != test.isSet || isSet && !at.Equal(noon.Add(test.want)) {
				t.Errorf("got %s, %t", at, isSet)
			}
		})
	}
}

func TestRecordRemovedIsBounded(t *testing.T) {
	var observed entries
	for i := range 2 * maxRemovedWorkloads {
		observed = append(observed, successful(strings.Repeat("x", i%200)))
	}
	rebalancer := newRebalancer([]string{"x"}, observed)
	RecordRemoved(rebalancer)
	removed := readRemoved(rebalancer)
	if len(removed) == 0 || len(removed) > maxRemovedWorkloads || removed[deployment("x")] {
		t.Errorf("%d removed workloads", len(removed))
	}
	rebalancer.Status.ObservedWorkloads = nil
	RecordRemoved(rebalancer)
	if text, ok := rebalancer.Annotations[appsv1alpha1.RemovedWorkloadsAnnotation]; ok {
		t.Errorf("an empty record %q", text)
	}
}

// Batches that each continue after the previous one reach every pending workload once.
func TestBatchesReachEveryPendingWorkload(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		listed := rapid.SliceOfDistinct(rapid.StringMatching(`[a-z]{1,3}`), rapid.ID[string]).Draw(t, "listed")
		observed := Observe(newRebalancer(listed, nil))
		want := map[string]int{}
		for i := range observed {
			if rapid.Bool().Draw(t, "is done") {
				observed[i].Result = appsv1alpha1.RebalanceSuccessful
				continue
			}
			want[observed[i].Workload.Name] = 1
		}
		size, got, after := rapid.IntRange(1, 5).Draw(t, "size"), map[string]int{}, Workload{}
		for isLast := false; !isLast; {
			var batch []int
			batch, isLast = NextBatch(observed, after, size)
			if len(batch) > size || !isLast && len(batch) != size {
				t.Fatalf("a batch of %d, at most %d", len(batch), size)
			}
			for _, i := range batch {
				after = observed[i].Workload
				got[after.Name]++
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("attempts by name (-want +got):\n%s", diff)
		}
	})
}

// Whatever a user does with the list, a repeated observation of the same state changes nothing, every listed
// workload has one entry, and only rebalanced workloads stay without being listed.
func TestObservedWorkloadsFollowTheSpec(t *testing.T) {
	names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		rebalancer := newRebalancer(nil, nil)
		for range 5 {
			rebalancer.Spec.Workloads = newRebalancer(names.Draw(t, "listed"), nil).Spec.Workloads
			observed := Observe(rebalancer)
			for i := range observed {
				if observed[i].Result == "" && rapid.Bool().Draw(t, "is attempted") {
					observed[i] = rapid.SampledFrom(entries{successful("x"), failed("x")}).Draw(t, "result")
					observed[i].Workload = Observe(rebalancer)[i].Workload
				}
			}
			rebalancer.Status = NewStatus(rebalancer, observed, noon)
			RecordRemoved(rebalancer)
			if diff := cmp.Diff(observed, Observe(rebalancer)); diff != "" {
				t.Fatalf("a second pass (-first +second):\n%s", diff)
			}
			listed := map[string]bool{}
			for _, workload := range rebalancer.Spec.Workloads {
				listed[workload.Name] = true
			}
			for _, entry := range observed {
				if !listed[entry.Workload.Name] && entry.Result != appsv1alpha1.RebalanceSuccessful {
					t.Fatalf("%s stays with the result %q", entry.Workload.Name, entry.Result)
				}
				delete(listed, entry.Workload.Name)
			}
			if len(listed) > 0 {
				t.Fatalf("no entries for %v", listed)
			}
		}
	})
}
