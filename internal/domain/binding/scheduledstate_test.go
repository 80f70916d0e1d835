package binding_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

var scheduledAt = metav1.NewTime(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))

// newScheduledBinding returns a binding that the scheduler has placed, but whose status does not show
// this yet.
func newScheduledBinding() *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "web-deployment", Namespace: "shop", Generation: 2}}
	bound.Spec = workv1alpha2.ResourceBindingSpec{
		Resource:  workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", ResourceVersion: "7"},
		Replicas:  2,
		Placement: &policyv1alpha1.Placement{},
		Clusters:  []workv1alpha2.TargetCluster{{Name: "member1", Replicas: 2}},
	}
	binding.RecordScheduled(bound, scheduledAt.Time)
	return bound
}

func TestReportScheduled(t *testing.T) {
	earlier := metav1.NewTime(scheduledAt.Add(-time.Hour))
	scheduled := func(status metav1.ConditionStatus, message string) func(*workv1alpha2.ResourceBinding) {
		return func(bound *workv1alpha2.ResourceBinding) {
			conditions.Set(&bound.Status.Conditions, metav1.Condition{
				Type: workv1alpha2.Scheduled, Status: status, Message: message, ObservedGeneration: 1, LastTransitionTime: earlier,
			})
			bound.Status.SchedulerObservedGeneration, bound.Status.LastScheduledTime = 1, &earlier
		}
	}
	tests := map[string]struct {
		change      func(*workv1alpha2.ResourceBinding)
		wantMessage string // empty if nothing may be reported
	}{
		"the first placement":                {func(*workv1alpha2.ResourceBinding) {}, binding.MessageScheduled},
		"a new version of the template":      {func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.ResourceVersion = "8" }, binding.MessageScheduled},
		"an earlier success keeps its notes": {scheduled(metav1.ConditionTrue, "with a note"), "with a note"},
		"an earlier failure":                 {scheduled(metav1.ConditionFalse, "no cluster fits"), ""},
		"no record":                          {func(b *workv1alpha2.ResourceBinding) { b.Annotations = nil }, ""},
		"other replicas":                     {func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas++ }, ""},
		"another placement": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"member2"}}
		}, ""},
		"an evicted cluster": {func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil }, ""},
		"another template":   {func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.UID = "another" }, ""},
		"an eviction task": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "member2"}}
		}, ""},
		"already reported": {func(b *workv1alpha2.ResourceBinding) { b.Status.SchedulerObservedGeneration = b.Generation }, ""},
		"no placement": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement = nil
			binding.RecordScheduled(b, scheduledAt.Time)
		}, ""},
		"affinity groups": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{{AffinityName: "first"}}
			binding.RecordScheduled(b, scheduledAt.Time)
		}, ""},
		"an affinity group that is not used anymore": {func(b *workv1alpha2.ResourceBinding) {
			b.Status.SchedulerObservedAffinityName = "first"
		}, ""},
		"an invalid record": {func(b *workv1alpha2.ResourceBinding) { b.Annotations[workv1alpha2.ScheduledStateAnnotation] = "x y" }, ""},
		"a pending reschedule request": {func(b *workv1alpha2.ResourceBinding) {
			scheduled(metav1.ConditionTrue, "")(b)
			b.Spec.RescheduleTriggeredAt = &scheduledAt
			binding.RecordScheduled(b, scheduledAt.Time)
		}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bound := newScheduledBinding()
			test.change(bound)
			reported := bound.DeepCopy()
			if changed := binding.ReportScheduled(reported, scheduledAt); changed != (test.wantMessage != "") {
				t.Fatalf("changed is %t", changed)
			}
			if test.wantMessage == "" {
				return
			}
			got := conditions.Get(reported.Status.Conditions, workv1alpha2.Scheduled)
			if got == nil || got.Status != metav1.ConditionTrue || got.Message != test.wantMessage || got.ObservedGeneration != 2 {
				t.Errorf("the condition is %+v", got)
			}
			if reported.Status.SchedulerObservedGeneration != 2 {
				t.Errorf("the status is %+v", reported.Status)
			}
			if got := reported.Status.LastScheduledTime; !got.Time.Equal(scheduledAt.Time) {
				t.Errorf("the time of the last scheduling is %s", got)
			}
			if binding.ReportScheduled(reported, scheduledAt) {
				t.Error("the second call changed the status")
			}
		})
	}
}

func TestReportScheduledDoesNotChangeSharedConditions(t *testing.T) {
	cached := newScheduledBinding()
	cached.Status.Conditions = append(make([]metav1.Condition, 0, 4), metav1.Condition{
		Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, ObservedGeneration: 1,
	})
	if !binding.ReportScheduled(binding.ShallowCopy(cached), scheduledAt) {
		t.Fatal("nothing is reported")
	}
	if cached.Status.Conditions[0].ObservedGeneration != 1 {
		t.Error("the condition of the cached binding changed")
	}
}

func TestReportScheduledKeepsTheTimeOfAnUnchangedResult(t *testing.T) {
	bound := newScheduledBinding()
	later := metav1.NewTime(scheduledAt.Add(time.Hour))
	bound.Status.LastScheduledTime = &later
	if !binding.ReportScheduled(bound, later) || !bound.Status.LastScheduledTime.Equal(&later) {
		t.Errorf("the status is %+v", bound.Status)
	}
}

func TestRemovePlacement(t *testing.T) {
	bound := newScheduledBinding()
	bound.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = "{}"
	bound.Annotations["other"] = "kept"
	binding.RemovePlacement(bound)
	if len(bound.Spec.Clusters) > 0 || len(bound.Annotations) != 1 || bound.Annotations["other"] != "kept" {
		t.Errorf("the binding is %+v", bound)
	}
}

func TestIsScheduled(t *testing.T) {
	tests := map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		want   bool
	}{
		"recorded with the clusters": {func(*workv1alpha2.ResourceBinding) {}, true},
		"reported in the status": {func(b *workv1alpha2.ResourceBinding) {
			b.Annotations, b.Status.SchedulerObservedGeneration = nil, b.Generation
		}, true},
		"neither":                        {func(b *workv1alpha2.ResourceBinding) { b.Annotations = nil }, false},
		"recorded for another spec":      {func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 5 }, false},
		"recorded, but a failure is new": {func(b *workv1alpha2.ResourceBinding) { fail(b, 0) }, false},
		"observed, but failed":           {func(b *workv1alpha2.ResourceBinding) { fail(b, b.Generation) }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bound := newScheduledBinding()
			test.change(bound)
			if got := binding.IsScheduled(bound); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func fail(bound *workv1alpha2.ResourceBinding, observed int64) {
	bound.Status.SchedulerObservedGeneration = observed
	conditions.Set(&bound.Status.Conditions, metav1.Condition{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse})
}
