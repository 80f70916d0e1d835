package scheduler

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/loop"
)

// newDeferringScheduler returns a scheduler that defers statuses, and whose time is *now.
func newDeferringScheduler(t *testing.T, bound *workv1alpha2.ResourceBinding) (l *testScheduler, now *time.Time) {
	t.Helper()
	l = newTestScheduler(t, withoutVersion(bound), member("member1"), member("member2"))
	l.deferredStatuses = newDeferredStatuses(loop.DefaultPacingPolicy())
	t.Cleanup(l.deferredStatuses.queue.ShutDown)
	now = new(noon.Time)
	l.now = func() time.Time { return *now }
	return l, now
}

// writeDeferred processes the deferred status of the binding and returns the writes.
func (l *testScheduler) writeDeferred(t *testing.T) []string {
	t.Helper()
	l.writes = nil
	l.writeDeferredStatus(t.Context(), requestFor("web-deployment"))
	return l.writes
}

func TestDeferredStatusIsWrittenAfterASecond(t *testing.T) {
	l, now := newDeferringScheduler(t, newBinding(divided))
	writes, _, stored := l.pass(t)
	if diff := cmp.Diff([]string{"clusters"}, writes); diff != "" || !binding.IsScheduled(stored) {
		t.Fatalf("the binding %+v has the writes %v", stored, writes)
	}
	if writes := l.writeDeferred(t); len(writes) != 0 {
		t.Errorf("the writes before the status is due are %v", writes)
	}
	*now = now.Add(time.Second)
	if diff := cmp.Diff([]string{"status"}, l.writeDeferred(t)); diff != "" {
		t.Error(diff)
	}
	writes, _, stored = l.pass(t)
	scheduled := conditions.Get(stored.Status.Conditions, workv1alpha2.Scheduled)
	if len(writes) != 0 || scheduled == nil || scheduled.Message != binding.MessageScheduled || stored.Status.LastScheduledTime == nil {
		t.Errorf("the next pass writes %v, and the status is %+v", writes, stored.Status)
	}
	if writes := l.writeDeferred(t); len(writes) != 0 {
		t.Errorf("the writes after the status are %v", writes)
	}
}

func TestDeferredStatusOfAnotherWriterIsNotWritten(t *testing.T) {
	l, now := newDeferringScheduler(t, newBinding(divided))
	_, _, stored := l.pass(t)
	if !binding.ReportScheduled(stored, noon) {
		t.Fatal("the success cannot be reported")
	}
	if err := l.karmada.Status().Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	l.ownWrites.Forget(requestFor("web-deployment")) // as the watch does
	*now = now.Add(time.Second)
	if writes := l.writeDeferred(t); len(writes) != 0 {
		t.Errorf("the writes are %v", writes)
	}
}

func TestDeferredStatusOfAChangedBindingIsNotWritten(t *testing.T) {
	l, now := newDeferringScheduler(t, newBinding(divided))
	_, _, stored := l.pass(t)
	stored.Spec.Replicas++
	stored.Generation++
	if err := l.karmada.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	l.ownWrites.Forget(requestFor("web-deployment"))
	*now = now.Add(time.Second)
	if writes := l.writeDeferred(t); len(writes) != 0 {
		t.Errorf("the writes are %v", writes)
	}
}

func TestDeferredStatusIsWrittenIfTheRecordIsLost(t *testing.T) {
	l, now := newDeferringScheduler(t, newBinding(divided))
	_, _, stored := l.pass(t)
	stored.Annotations = nil
	if err := l.karmada.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	l.ownWrites.Forget(requestFor("web-deployment"))
	*now = now.Add(time.Second)
	if diff := cmp.Diff([]string{"status"}, l.writeDeferred(t)); diff != "" {
		t.Error(diff)
	}
}

func TestFailureReplacesDeferredStatus(t *testing.T) {
	l, now := newDeferringScheduler(t, newBinding(divided))
	l.pass(t)
	if _, isPending := l.deferredStatuses.get(requestFor("web-deployment")); !isPending {
		t.Fatal("no status is deferred")
	}
	cached := newBinding()
	if err := l.karmada.Get(t.Context(), requestFor("web-deployment").NamespacedName, cached); err != nil {
		t.Fatal(err)
	}
	failure := failedOutcome(cached, errors.New("the peers cannot be listed"))
	l.recordOutcome(t.Context(), pass{request: requestFor("web-deployment"), stored: cached, snapshot: l.clusters.snapshot(), started: *now}, failure)
	*now = now.Add(time.Second)
	if writes := l.writeDeferred(t); len(writes) != 0 {
		t.Errorf("the writes are %v", writes)
	}
}

func TestFailureIsNotRecordedAsSuccess(t *testing.T) {
	l, _ := newDeferringScheduler(t, newBinding(divided))
	_, _, placed := l.pass(t)
	if !binding.IsScheduled(placed) {
		t.Fatal("the success is not recorded")
	}
	l.clusters.remove("member1")
	l.clusters.remove("member2")
	placed.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"member9"}}
	placed.Generation++
	if err := l.karmada.Update(t.Context(), placed); err != nil {
		t.Fatal(err)
	}
	l.ownWrites.Forget(requestFor("web-deployment"))
	writes, _, failed := l.pass(t)
	if value, isSet := failed.Annotations[workv1alpha2.ScheduledStateAnnotation]; isSet && binding.IsScheduled(failed) {
		t.Errorf("the record after a failure is %q, and the writes are %v", value, writes)
	}
}

func TestFailuresAreNotDeferred(t *testing.T) {
	l, _ := newDeferringScheduler(t, newBinding(divided))
	l.clusters.remove("member1")
	l.clusters.remove("member2")
	writes, _, stored := l.pass(t)
	if !conditions.HasStatus(stored.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionFalse) {
		t.Errorf("the writes are %v, and the conditions are %+v", writes, stored.Status.Conditions)
	}
}

func TestSuccessAfterAFailureIsNotDeferred(t *testing.T) {
	bound := newBinding(divided)
	bound.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse}}
	l, _ := newDeferringScheduler(t, bound)
	writes, _, _ := l.pass(t)
	if diff := cmp.Diff([]string{"clusters", "status"}, writes); diff != "" {
		t.Error(diff)
	}
}

func TestAffinityGroupIsNotDeferred(t *testing.T) {
	l, _ := newDeferringScheduler(t, newBinding(divided, inAffinityGroups))
	writes, _, stored := l.pass(t)
	if stored.Status.SchedulerObservedAffinityName != "second" {
		t.Errorf("the writes are %v, and the status is %+v", writes, stored.Status)
	}
}
