package scheduler

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/capacity"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/loop"
)

func TestSchedulingWritesTwiceWithOneEvent(t *testing.T) {
	l := newTestScheduler(t, withoutVersion(newBinding(divided)), member("member1"), member("member2"))
	writes, after, stored := l.pass(t)
	if diff := cmp.Diff([]string{"clusters", "status"}, writes); diff != "" || after != 0 {
		t.Errorf("again after %s, writes:\n%s", after, diff)
	}
	if !conditions.HasStatus(stored.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionTrue) || len(stored.Spec.Clusters) != 2 {
		t.Errorf("stored %+v", stored)
	}
	want := []string{"Normal ScheduleBindingSucceed Binding has been scheduled successfully. Result: {member1:2, member2:2}"}
	if diff := cmp.Diff(want, l.recordedEvents()); diff != "" {
		t.Error(diff)
	}
	if writes, _, _ := l.pass(t); len(writes) != 0 || len(l.recordedEvents()) != 0 {
		t.Errorf("the second pass writes %v", writes)
	}
}

func TestConflictIsNotReported(t *testing.T) {
	l := newTestScheduler(t, withoutVersion(newBinding(divided)), member("member1"))
	l.rejectOnce["clusters"] = apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("newer"))
	writes, after, stored := l.pass(t)
	if diff := cmp.Diff([]string{"clusters"}, writes); diff != "" || after != conflictRetryDelay {
		t.Errorf("again after %s, writes:\n%s", after, diff)
	}
	if len(stored.Status.Conditions) != 0 || len(l.recordedEvents()) != 0 {
		t.Errorf("a conflict is reported: %+v", stored.Status)
	}
}

// After the restore of a backup the binding is older than the last write of the scheduler.
func TestRestoredBindingIsScheduledAgain(t *testing.T) {
	l := newTestScheduler(t, withoutVersion(newBinding(divided)), member("member1"))
	lost := &workv1alpha2.ResourceBinding{}
	if err := l.karmada.Get(t.Context(), requestFor("web-deployment").NamespacedName, lost); err != nil {
		t.Fatal(err)
	}
	lost.ResourceVersion += "000"
	l.ownWrites.RecordState(requestFor("web-deployment"), lost)
	if _, after, _ := l.pass(t); after != conflictRetryDelay {
		t.Errorf("the write over a lost state is retried after %s", after)
	}
	_, _, stored := l.pass(t)
	if len(stored.Spec.Clusters) != 1 {
		t.Errorf("clusters %v", stored.Spec.Clusters)
	}
}

func TestStatusConflictIsRetriedImmediately(t *testing.T) {
	l := newTestScheduler(t, withoutVersion(newBinding(divided)), member("member1"))
	l.rejectOnce["status"] = apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("newer"))
	writes, after, stored := l.pass(t)
	if diff := cmp.Diff([]string{"clusters", "status", "status"}, writes); diff != "" || after != 0 {
		t.Errorf("again after %s, writes:\n%s", after, diff)
	}
	if !conditions.HasStatus(stored.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionTrue) {
		t.Errorf("stored %+v", stored.Status)
	}
}

func TestQuotaRejectionKeepsTargets(t *testing.T) {
	l := newTestScheduler(t, withoutVersion(newBinding(divided)), member("member1"))
	l.rejectOnce["clusters"] = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: "QuotaExceeded", Message: "over quota"}}
	_, after, stored := l.pass(t)
	condition := conditions.Get(stored.Status.Conditions, workv1alpha2.Scheduled)
	if condition == nil || condition.Reason != workv1alpha2.BindingReasonQuotaExceeded || len(stored.Spec.Clusters) != 0 {
		t.Errorf("stored %+v", stored)
	}
	if after != time.Second {
		t.Errorf("again after %s", after)
	}
	if got := l.recordedEvents(); len(got) != 2 {
		t.Errorf("events %v, want the binding and the template", got)
	}
	if _, after, _ := l.pass(t); after != 0 {
		t.Errorf("the success is followed by a retry after %s", after)
	}
}

// fullEstimator reports no capacity.
type fullEstimator struct{ calls int }

func (f *fullEstimator) Estimate(_ context.Context, _ capacity.Demand, _ []*clusterv1alpha1.Cluster, report estimators.Report) {
	f.calls++
	report(0, capacity.Estimate{Count: 0})
}

func TestUnschedulableBindingWaitsForCapacity(t *testing.T) {
	byCapacity := func(bound *workv1alpha2.ResourceBinding) {
		bound.Spec.Placement.ReplicaScheduling.ReplicaDivisionPreference = "Aggregated"
	}
	l := newTestScheduler(t, withoutVersion(newBinding(divided, byCapacity)), member("member1"))
	estimator := &fullEstimator{}
	l.estimators = []estimators.Row{{Name: "full", Estimator: estimator}}
	writes, after, _ := l.pass(t)
	if diff := cmp.Diff([]string{"status"}, writes); diff != "" || after != 5*time.Minute {
		t.Errorf("again after %s, writes:\n%s", after, diff)
	}
	l.recordedEvents()
	if writes, _, _ := l.pass(t); len(writes) != 0 || len(l.recordedEvents()) != 0 || estimator.calls != 2 {
		t.Errorf("the same failure writes %v after %d estimates", writes, estimator.calls)
	}
}

// The condition says that the status of a cluster is not the reason for a lack of room.
func TestLimitsOfEstimatorsAreReported(t *testing.T) {
	l := newTestScheduler(t, withoutVersion(newBinding(aggregated)), memberWithPods("member1", "9"))
	l.estimators = []estimators.Row{{Name: "resource summary", Estimator: estimators.Summary{}}, {Name: "estimator", Estimator: &fullEstimator{}}}
	_, _, stored := l.pass(t)
	condition := conditions.Get(stored.Status.Conditions, workv1alpha2.Scheduled)
	const want = "4 replicas wanted, room for 0 (member1 0). The estimators of member1 find less room than the status of these clusters shows."
	if condition == nil || !strings.HasSuffix(condition.Message, want) {
		t.Errorf("condition %+v, want one that ends with %q", condition, want)
	}
	l.estimators = l.estimators[1:]
	if _, _, stored = l.pass(t); strings.Contains(stored.Status.Conditions[0].Message, "The estimators of") {
		t.Errorf("one estimator is compared with itself: %q", stored.Status.Conditions[0].Message)
	}
}

// brokenEstimator fails for every cluster.
type brokenEstimator struct{}

func (brokenEstimator) Estimate(_ context.Context, _ capacity.Demand, clusters []*clusterv1alpha1.Cluster, report estimators.Report) {
	for i := range clusters {
		report(i, capacity.Estimate{Err: errors.New("connection refused")})
	}
}

// The condition and the event name failed estimators. The end of the failure causes no write.
func TestFailedEstimatorsAreReported(t *testing.T) {
	l := newTestScheduler(t, withoutVersion(newBinding(aggregated)), memberWithPods("member1", "9"), memberWithPods("member2", "9"))
	l.estimators = []estimators.Row{{Name: "resource summary", Estimator: estimators.Summary{}}, {Name: "estimator", Estimator: brokenEstimator{}}}
	const note = "Failed estimators are ignored, and the resource summary is used: member1, member2: estimator: connection refused"
	writes, _, stored := l.pass(t)
	condition := conditions.Get(stored.Status.Conditions, workv1alpha2.Scheduled)
	if diff := cmp.Diff([]string{"clusters", "status"}, writes); diff != "" || condition == nil || condition.Message != binding.MessageScheduled+" "+note {
		t.Errorf("condition %+v, writes:\n%s", condition, diff)
	}
	if diff := cmp.Diff([]string{"Normal ScheduleBindingSucceed " + binding.MessageScheduled + " Result: {member1:4}. " + note}, l.recordedEvents()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	l.estimators = l.estimators[:1]
	if writes, _, _ := l.pass(t); len(writes) != 0 || len(l.recordedEvents()) != 0 {
		t.Errorf("the second pass writes %v", writes)
	}
}

func TestUnhandledBindingsAreUnchanged(t *testing.T) {
	cases := map[string]func(*workv1alpha2.ResourceBinding){
		"another scheduler that has reported": func(bound *workv1alpha2.ResourceBinding) {
			bound.Spec.SchedulerName = "other"
			bound.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: "Any"}}
		},
		"suspended": func(bound *workv1alpha2.ResourceBinding) {
			bound.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
		},
		"a dependency": func(bound *workv1alpha2.ResourceBinding) { bound.Labels = nil },
		"being deleted": func(bound *workv1alpha2.ResourceBinding) {
			bound.DeletionTimestamp, bound.Finalizers = &noon, []string{"karmada.io/binding-controller"}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			l := newTestScheduler(t, withoutVersion(newBinding(change)), member("member1"))
			if writes, after, _ := l.pass(t); len(writes) != 0 || after != 0 || len(l.recordedEvents()) != 0 {
				t.Errorf("writes %v, again after %s", writes, after)
			}
		})
	}
}

func TestDeletedBindingIsNotTracked(t *testing.T) {
	l := newTestScheduler(t, withoutVersion(newBinding()))
	gone := requestFor("gone")
	l.backoff.recordFailure(gone, retryWithBackoff)
	former := newBindingVersion("9")
	l.ownWrites.RecordState(gone, newBindingVersion("10"))
	if _, err := l.Reconcile(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if len(l.backoff.waiting) != 0 || loop.Latest(l.ownWrites, gone, former) != former {
		t.Error("state of a deleted binding remains")
	}
}

func TestConditionNamesUnknownClusters(t *testing.T) {
	misspelt := func(bound *workv1alpha2.ResourceBinding) {
		bound.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"member1", "membre2"}}
	}
	const remark = ` The placement names cluster "membre2", which does not exist: correct the name, or join the cluster.`
	for name, shape := range map[string]func(*workv1alpha2.ResourceBinding){"duplicated": func(*workv1alpha2.ResourceBinding) {}, "divided": divided} {
		t.Run(name, func(t *testing.T) {
			l := newTestScheduler(t, withoutVersion(newBinding(shape, misspelt)), member("member1"))
			expectMessage := func(want string) {
				t.Helper()
				_, _, stored := l.pass(t)
				if diff := cmp.Diff(want, conditions.Get(stored.Status.Conditions, workv1alpha2.Scheduled).Message); diff != "" {
					t.Errorf("message (-want +got):\n%s", diff)
				}
			}
			expectMessage(binding.MessageScheduled + remark)
			if writes, _, _ := l.pass(t); len(writes) != 0 {
				t.Errorf("the second pass writes %v", writes)
			}
			l.clusters.put(member("membre2"), true)
			expectMessage(binding.MessageScheduled)
			l.clusters.remove("membre2")
			expectMessage(binding.MessageScheduled + remark)
		})
	}
}

func TestFailureNamesUnknownClusters(t *testing.T) {
	l := newTestScheduler(t, withoutVersion(newBinding(divided, func(bound *workv1alpha2.ResourceBinding) {
		bound.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"membre1"}}
	})), member("member1"))
	const want = "0/1 clusters are available: no cluster matches the cluster affinity (clusterNames membre1)." +
		` The placement names cluster "membre1", which does not exist: correct the name, or join the cluster.`
	_, _, stored := l.pass(t)
	condition := conditions.Get(stored.Status.Conditions, workv1alpha2.Scheduled)
	if condition.Reason != workv1alpha2.BindingReasonNoClusterFit || condition.Message != want {
		t.Errorf("condition %+v", condition)
	}
	event := "Warning ScheduleBindingFailed " + want
	if diff := cmp.Diff([]string{event, event}, l.recordedEvents()); diff != "" {
		t.Error(diff)
	}
	// The end of the failure is recorded on the binding and on the template.
	l.clusters.put(member("membre1"), true)
	l.pass(t)
	event = "Normal ScheduleBindingSucceed Binding has been scheduled successfully. Result: {membre1:4}"
	if diff := cmp.Diff([]string{event, event}, l.recordedEvents()); diff != "" {
		t.Error(diff)
	}
}

// A pass reads bindings that are shared with the cache, so it must replace what it changes.
func TestPassDoesNotModifyTheCachedBinding(t *testing.T) {
	cached := newBinding(aggregated, func(bound *workv1alpha2.ResourceBinding) {
		bound.Annotations = map[string]string{"owner": "shop"}
		bound.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: "NoClusterFit"}}
	})
	before := cached.DeepCopy()
	store := newMemoryStore()
	if err := store.indexer.Add(cached); err != nil {
		t.Fatal(err)
	}
	l := newTestScheduler(t, withoutVersion(newBinding()), memberWithPods("member1", "6"))
	l.karmada = store
	if _, err := l.Reconcile(t.Context(), requestFor(cached.Name)); err != nil {
		t.Fatal(err)
	}
	if written := store.version.Load(); written != 2 {
		t.Errorf("%d writes, want 2", written)
	}
	if diff := cmp.Diff(before, cached); diff != "" {
		t.Errorf("the cached binding changed (-before +after):\n%s", diff)
	}
}
