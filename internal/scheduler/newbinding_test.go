package scheduler

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/loop"
)

// beforeCreation makes the binding look as before its creation.
func beforeCreation(bound *workv1alpha2.ResourceBinding) {
	bound.UID, bound.Generation, bound.ResourceVersion = "", 0, ""
}

func TestPlaceNew(t *testing.T) {
	byCapacity := func(bound *workv1alpha2.ResourceBinding) {
		divided(bound)
		bound.Spec.Placement.ReplicaScheduling.WeightPreference = &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas}
	}
	onCluster := func(name string) func(*workv1alpha2.ResourceBinding) {
		return func(bound *workv1alpha2.ResourceBinding) {
			bound.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{name, "member1"}}
		}
	}
	tests := map[string]struct {
		change []func(*workv1alpha2.ResourceBinding)
		want   []workv1alpha2.TargetCluster
	}{
		"every cluster gets the same":     {nil, []workv1alpha2.TargetCluster{{Name: "member1", Replicas: 4}, {Name: "member2", Replicas: 4}}},
		"divided by static weights":       {[]func(*workv1alpha2.ResourceBinding){divided}, nil},
		"divided by capacity":             {[]func(*workv1alpha2.ResourceBinding){byCapacity}, nil},
		"affinity groups":                 {[]func(*workv1alpha2.ResourceBinding){inAffinityGroups}, nil},
		"a named cluster that is missing": {[]func(*workv1alpha2.ResourceBinding){onCluster("absent")}, nil},
		"no cluster fits": {[]func(*workv1alpha2.ResourceBinding){func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"member1", "member2"}}
		}}, nil},
		"another scheduler": {[]func(*workv1alpha2.ResourceBinding){func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "another" }}, nil},
		"no placement":      {[]func(*workv1alpha2.ResourceBinding){func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil }}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l, _ := newDeferringScheduler(t, newBinding())
			created := newBinding(append(test.change, beforeCreation)...)
			before := created.DeepCopy()
			l.placeNew(t.Context(), created)
			if diff := cmp.Diff(test.want, created.Spec.Clusters); diff != "" {
				t.Errorf("the clusters (-want +got):\n%s", diff)
			}
			if test.want == nil {
				if diff := cmp.Diff(before, created); diff != "" {
					t.Errorf("the binding changed (-before +after):\n%s", diff)
				}
				return
			}
			created.Generation = 1
			if !binding.IsScheduled(created) {
				t.Error("the binding is not recorded as scheduled")
			}
		})
	}
}

// addPlaced places a new binding, stores it, and calls the handler for its creation.
func addPlaced(t *testing.T, beforeEvent func(*testScheduler, *workv1alpha2.ResourceBinding)) (*testScheduler, *source) {
	t.Helper()
	created := newBinding()
	l, _ := newDeferringScheduler(t, created)
	var placer loop.BindingPlacer
	placer.Set(t.Context(), l.placeNew)
	placer.Place(t.Context(), created)
	if err := l.karmada.Update(t.Context(), created); err != nil {
		t.Fatal(err)
	}
	if beforeEvent != nil {
		beforeEvent(l, created)
	}
	s := newSource(t, l)
	s.handleBindingAdded(created, false)
	return l, s
}

func TestPlacedBindingIsNotScheduledAgain(t *testing.T) {
	l, s := addPlaced(t, nil)
	if s.queue.Len() != 0 || len(l.writes) != 0 {
		t.Errorf("%d bindings are queued, and the writes are %v", s.queue.Len(), l.writes)
	}
	want := []string{"Normal ScheduleBindingSucceed Binding has been scheduled successfully. Result: {member1:4, member2:4}"}
	if diff := cmp.Diff(want, l.recordedEvents()); diff != "" {
		t.Error(diff)
	}
}

func TestPlacedBindingIsScheduledAfterAClusterChange(t *testing.T) {
	_, s := addPlaced(t, func(l *testScheduler, _ *workv1alpha2.ResourceBinding) { l.clusters.put(member("member3"), true) })
	if s.queue.Len() != 1 {
		t.Errorf("%d bindings are queued", s.queue.Len())
	}
}

func TestPlacedBindingIsScheduledIfItWasChangedOnCreation(t *testing.T) {
	_, s := addPlaced(t, func(_ *testScheduler, created *workv1alpha2.ResourceBinding) { created.Spec.Replicas = 9 })
	if s.queue.Len() != 1 {
		t.Errorf("%d bindings are queued", s.queue.Len())
	}
}

func TestBindingPlacerWithoutAScheduler(t *testing.T) {
	created := newBinding()
	before := created.DeepCopy()
	var placer *loop.BindingPlacer
	placer.Place(t.Context(), created)
	(&loop.BindingPlacer{}).Place(t.Context(), created)
	if diff := cmp.Diff(before, created); diff != "" {
		t.Error(diff)
	}
}
