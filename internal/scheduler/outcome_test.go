package scheduler

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/placement"
)

// storedAfterWrite returns the object desired as an API server would store it, with a new
// generation if the spec changed.
func storedAfterWrite(t *testing.T, stored, desired binding.Object) binding.Object {
	t.Helper()
	answer := binding.Copy(desired)
	if !cmp.Equal(stored.BindingSpec(), desired.BindingSpec(), cmpopts.EquateEmpty()) {
		answer.SetGeneration(stored.GetGeneration() + 1)
	}
	return answer
}

// runPass runs a whole pass and returns the stored binding after each write.
func runPass(t *testing.T, stored binding.Object, now metav1.Time, clusters ...*clusterv1alpha1.Cluster) (placed, reported binding.Object, v outcome) {
	t.Helper()
	w := newClusterSnapshots()
	for _, cluster := range clusters {
		w.put(cluster, true)
	}
	decision, err := decide(stored, w.snapshot().find, placement.Features{})
	if err != nil {
		t.Fatal(err)
	}
	placed = stored
	switch decision.Action {
	case placement.ActionSchedule:
		result, err := placement.Schedule(placement.Input{
			Spec: stored.BindingSpec(), Status: stored.BindingStatus(), AppliedPlacement: appliedPlacement(stored), Clusters: w.snapshot().clusters,
		})
		var desired binding.Object
		desired, v = desiredBinding(pass{stored: stored, snapshot: w.snapshot(), started: now.Time}, result, err)
		placed = storedAfterWrite(t, stored, desired)
	case placement.ActionObserve:
		v = unchangedOutcome(stored)
	default:
		return stored, stored, outcome{}
	}
	return placed, withReportedStatus(placed, v, placed.GetGeneration(), now), v
}

func TestSecondPassWritesNothing(t *testing.T) {
	cases := map[string]struct {
		bound    binding.Object
		clusters []*clusterv1alpha1.Cluster
		affinity string
	}{
		"duplicated": {newBinding(), []*clusterv1alpha1.Cluster{member("member1"), member("member2")}, ""},
		"divided":    {newBinding(divided), []*clusterv1alpha1.Cluster{member("member1"), member("member2")}, ""},
		"in groups":  {newBinding(inAffinityGroups), []*clusterv1alpha1.Cluster{member("member1"), member("member2")}, "second"},
		"divided in groups": {
			newBinding(divided, inAffinityGroups), []*clusterv1alpha1.Cluster{member("member1"), member("member2")}, "second"},
		"of either scope": {&workv1alpha2.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1},
			Spec:       newBinding().Spec,
		}, []*clusterv1alpha1.Cluster{member("member1")}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			placed, reported, _ := runPass(t, tc.bound, noon, tc.clusters...)
			if len(placed.BindingSpec().Clusters) == 0 {
				t.Fatal("nothing was placed")
			}
			status := reported.BindingStatus()
			if status.SchedulerObservedGeneration != 2 || reported.GetGeneration() != 2 {
				t.Errorf("observed generation %d of %d, want the one after the result", status.SchedulerObservedGeneration, reported.GetGeneration())
			}
			if status.SchedulerObservedAffinityName != tc.affinity {
				t.Errorf("affinity group %q, want %q", status.SchedulerObservedAffinityName, tc.affinity)
			}
			if !status.LastScheduledTime.Equal(&noon) {
				t.Errorf("scheduled at %v", status.LastScheduledTime)
			}
			later := noonPlus(5)
			placedAgain, reportedAgain, _ := runPass(t, reported, later, tc.clusters...)
			if diff := cmp.Diff(reported, placedAgain); diff != "" {
				t.Errorf("the second pass writes the result:\n%s", diff)
			}
			if diff := cmp.Diff(reported, reportedAgain); diff != "" {
				t.Errorf("the second pass writes the status:\n%s", diff)
			}
		})
	}
}

func TestNoFittingCluster(t *testing.T) {
	t.Run("removes the targets after a change of the placement, without retry", func(t *testing.T) {
		bound := newBinding(func(bound *workv1alpha2.ResourceBinding) {
			bound.Spec.Clusters = targets("gone")
			bound.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"none"}}
		})
		placed, reported, v := runPass(t, bound, noon, member("member1"))
		if len(placed.BindingSpec().Clusters) != 0 || appliedPlacement(placed) == "" {
			t.Errorf("stored %v for %q", placed.BindingSpec().Clusters, appliedPlacement(placed))
		}
		if v.retry != retryNever {
			t.Errorf("retry %v", v.retry)
		}
		want := metav1.Condition{
			Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: workv1alpha2.BindingReasonNoClusterFit, ObservedGeneration: 2,
			Message:            "0/1 clusters are available: no cluster matches the cluster affinity (clusterNames none).",
			LastTransitionTime: noon,
		}
		if diff := cmp.Diff(&want, conditions.Get(reported.BindingStatus().Conditions, workv1alpha2.Scheduled)); diff != "" {
			t.Error(diff)
		}
		if status := reported.BindingStatus(); status.SchedulerObservedGeneration != 2 || status.LastScheduledTime != nil {
			t.Errorf("the generation was not observed, or a failure counts as success: %+v", status)
		}
	})
	t.Run("keeps the targets if only clusters changed, and reports that", func(t *testing.T) {
		_, before, _ := runPass(t, newBinding(), noon, member("member1"))
		tainted := member("member1")
		tainted.Labels = map[string]string{"changed": "yes"}
		evicting := binding.Copy(before)
		evicting.BindingSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "member1"}}
		placed, reported, v := runPass(t, evicting, noonPlus(1), tainted)
		if diff := cmp.Diff(before.BindingSpec().Clusters, placed.BindingSpec().Clusters); diff != "" {
			t.Errorf("the previous placement is gone:\n%s", diff)
		}
		condition := conditions.Get(reported.BindingStatus().Conditions, workv1alpha2.Scheduled)
		want := "0/1 clusters are available: cluster member1: eviction in progress. The previous placement is kept."
		if condition.Message != want || condition.Status != metav1.ConditionFalse || v.retry != retryNever {
			t.Errorf("condition %+v, retry %v", condition, v.retry)
		}
	})
	t.Run("does not report kept targets if there are none", func(t *testing.T) {
		_, before, _ := runPass(t, newBinding(), noon, member("member1"))
		evicted := binding.Copy(before)
		evicted.BindingSpec().Clusters = nil
		evicted.BindingSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "member1"}}
		_, _, v := runPass(t, evicted, noonPlus(1), member("member1"))
		if want := "0/1 clusters are available: cluster member1: eviction in progress."; v.message != want {
			t.Errorf("message %q, want %q", v.message, want)
		}
	})
}

func TestOutcomes(t *testing.T) {
	cases := map[string]struct {
		err    error
		reason string
		retry  retryMode
	}{
		"no error is a success":                       {nil, workv1alpha2.BindingReasonSuccess, retryNever},
		"no fitting cluster waits for events":         {&placement.FitError{}, workv1alpha2.BindingReasonNoClusterFit, retryNever},
		"not enough capacity waits for capacity":      {&placement.UnschedulableError{}, workv1alpha2.BindingReasonUnschedulable, retryWhenCapacity},
		"a missing placement is retried":              {placement.ErrNoPlacement, workv1alpha2.BindingReasonSchedulerError, retryWithBackoff},
		"an unsatisfied spread constraint is retried": {errors.New("spread"), workv1alpha2.BindingReasonSchedulerError, retryWithBackoff},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := newOutcome(tc.err)
			if v.reason != tc.reason || v.retry != tc.retry || !errors.Is(v.err, tc.err) {
				t.Errorf("outcome %+v", v)
			}
		})
	}
}

func TestRejectedWrites(t *testing.T) {
	resource := schema.GroupResource{Group: workv1alpha2.GroupName, Resource: "resourcebindings"}
	quota := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: "QuotaExceeded", Message: "over quota"}}
	terminating := apierrors.NewForbidden(resource, "web", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		before outcome
		err    error
		reason string
		retry  retryMode
	}{
		"an exceeded quota has its own reason and is retried": {newOutcome(nil), quota, workv1alpha2.BindingReasonQuotaExceeded, retryWithBackoff},
		"another rejection is a scheduler error":              {newOutcome(nil), apierrors.NewForbidden(resource, "web", errors.New("no")), workv1alpha2.BindingReasonSchedulerError, retryWithBackoff},
		"a conflict is retried immediately":                   {newOutcome(nil), apierrors.NewConflict(resource, "web", errors.New("newer")), workv1alpha2.BindingReasonSchedulerError, retryAfterConflict},
		"a terminating namespace is not retried":              {newOutcome(nil), terminating, workv1alpha2.BindingReasonSchedulerError, retryNever},
		"a deleted binding is not retried":                    {newOutcome(nil), apierrors.NewNotFound(resource, "web"), workv1alpha2.BindingReasonSchedulerError, retryNever},
		"NoClusterFit that cannot be stored is retried":       {newOutcome(&placement.FitError{}), quota, workv1alpha2.BindingReasonNoClusterFit, retryWithBackoff},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := tc.before.rejected(newBinding(), tc.err)
			if v.reason != tc.reason || v.retry != tc.retry || !errors.Is(v.err, tc.err) || v.message == "" {
				t.Errorf("outcome %+v", v)
			}
		})
	}
}

func TestErrorsKeepTargets(t *testing.T) {
	bound := newBinding(func(bound *workv1alpha2.ResourceBinding) { bound.Spec.Clusters = targets("member1") })
	desired, v := desiredBinding(pass{stored: bound, snapshot: &snapshot{}}, placement.Result{Clusters: targets("member1")}, &placement.UnschedulableError{})
	if diff := cmp.Diff(binding.Object(bound), desired); diff != "" {
		t.Errorf("a failure changes the binding:\n%s", diff)
	}
	if v.isPlaced {
		t.Error("a failure counts as placed")
	}
}

func TestSameTargets(t *testing.T) {
	cases := map[string]struct {
		a, b []workv1alpha2.TargetCluster
		want bool
	}{
		"nil and empty":              {nil, []workv1alpha2.TargetCluster{}, true},
		"another order":              {targets("a", "b"), targets("b", "a"), true},
		"another cluster":            {targets("a", "b"), targets("a", "c"), false},
		"another number of replicas": {targets("a"), []workv1alpha2.TargetCluster{{Name: "a", Replicas: 3}}, false},
		"an additional target":       {targets("a"), targets("a", "b"), false},
		"a duplicate target":         {targets("a", "b"), targets("a", "a"), false},
		"a duplicate stored target":  {targets("a", "a"), targets("a", "b"), false},
		"other components": {targets("a"), []workv1alpha2.TargetCluster{
			{Name: "a", Replicas: 2, Components: []workv1alpha2.TargetComponent{{Name: "x", Replicas: 1}}}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := haveSameTargets(tc.a, tc.b); got != tc.want {
				t.Errorf("haveSameTargets = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestUnchangedResult(t *testing.T) {
	condition := func(status metav1.ConditionStatus, generation int64) func(*workv1alpha2.ResourceBinding) {
		return func(bound *workv1alpha2.ResourceBinding) {
			bound.Generation = 5
			bound.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: status, Reason: "Any", ObservedGeneration: generation}}
		}
	}
	onMember := func(bound *workv1alpha2.ResourceBinding) { bound.Spec.Clusters = targets("member1") }
	scheduled := func(bound *workv1alpha2.ResourceBinding) { bound.Status.LastScheduledTime = &noon }
	cases := map[string]struct {
		bound  binding.Object
		status metav1.ConditionStatus
		at     *metav1.Time
	}{
		"is recorded for the new generation": {newBinding(onMember, scheduled, condition(metav1.ConditionTrue, 4)), metav1.ConditionTrue, &noon},
		"replaces a failure that the user fixed": {
			newBinding(onMember, scheduled, condition(metav1.ConditionFalse, 4)), metav1.ConditionTrue, &noon},
		"does not replace a failure of this generation": {
			newBinding(onMember, scheduled, condition(metav1.ConditionFalse, 5)), metav1.ConditionFalse, &noon},
		"replaces the reason SchedulerNotReporting": {newBinding(onMember, scheduled, condition(metav1.ConditionFalse, 5),
			func(bound *workv1alpha2.ResourceBinding) {
				bound.Status.Conditions[0].Reason = workv1alpha2.BindingReasonSchedulerNotReporting
			}), metav1.ConditionTrue, &noon},
		"counts as no success without targets": {newBinding(scheduled, condition(metav1.ConditionFalse, 4)), metav1.ConditionFalse, &noon},
		"gets a time if it has none":           {newBinding(onMember, condition(metav1.ConditionTrue, 4)), metav1.ConditionTrue, new(noonPlus(9))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := withReportedStatus(tc.bound, unchangedOutcome(tc.bound), 5, noonPlus(9)).BindingStatus()
			if status.SchedulerObservedGeneration != 5 {
				t.Errorf("observed generation %d", status.SchedulerObservedGeneration)
			}
			if got := conditions.Get(status.Conditions, workv1alpha2.Scheduled).Status; got != tc.status {
				t.Errorf("Scheduled is %s, want %s", got, tc.status)
			}
			if diff := cmp.Diff(tc.at, status.LastScheduledTime); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnrecordedAffinityGroupIsScheduledAgain(t *testing.T) {
	_, reported, _ := runPass(t, newBinding(divided, inAffinityGroups), noon, member("member1"))
	reported.BindingStatus().SchedulerObservedAffinityName = ""
	reported.BindingStatus().SchedulerObservedGeneration = 1
	placed, repaired, _ := runPass(t, reported, noonPlus(1), member("member1"))
	if diff := cmp.Diff(reported, placed); diff != "" {
		t.Errorf("the result changed:\n%s", diff)
	}
	if got := repaired.BindingStatus().SchedulerObservedAffinityName; got != "second" {
		t.Errorf("affinity group %q", got)
	}
}

func TestRescheduleUpdatesLastScheduledTime(t *testing.T) {
	_, reported, _ := runPass(t, newBinding(), noon, member("member1"))
	reported.BindingSpec().RescheduleTriggeredAt = new(noonPlus(1))
	_, again, _ := runPass(t, reported, noonPlus(2), member("member1"))
	if diff := cmp.Diff(new(noonPlus(2)), again.BindingStatus().LastScheduledTime); diff != "" {
		t.Error(diff)
	}
}

func TestNoteAboutFailedEstimators(t *testing.T) {
	const note = " Failed estimators are ignored, and the resource summary is used: m1: estimator: no response within 3s"
	scheduled := func(generation int64, message string) []metav1.Condition {
		return []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, Reason: workv1alpha2.BindingReasonSuccess, Message: message, ObservedGeneration: generation}}
	}
	failed := map[string]string{"m1": "estimator: no response within 3s"}
	tests := map[string]struct {
		stored  []metav1.Condition
		outcome outcome
		want    string
	}{
		"a first success":                         {nil, outcome{isPlaced: true, failedEstimators: failed}, binding.MessageScheduled + note},
		"a success of a new generation":           {scheduled(1, binding.MessageScheduled), outcome{isPlaced: true, failedEstimators: failed}, binding.MessageScheduled + note},
		"a success without failed estimators":     {scheduled(1, binding.MessageScheduled+note), outcome{isPlaced: true}, binding.MessageScheduled},
		"the same success does not get a note":    {scheduled(2, binding.MessageScheduled), outcome{isPlaced: true, failedEstimators: failed}, binding.MessageScheduled},
		"the same success keeps its note":         {scheduled(2, binding.MessageScheduled+note), outcome{isPlaced: true}, binding.MessageScheduled + note},
		"a binding that is not scheduled":         {scheduled(1, binding.MessageScheduled+note), outcome{}, binding.MessageScheduled + note},
		"a failure has the current note":          {scheduled(2, binding.MessageScheduled), outcome{err: errors.New("x"), message: "No room", failedEstimators: failed}, "No room." + note},
		"the end of the failure of the estimator": {scheduled(2, "No room."+note), outcome{err: errors.New("x"), message: "No room"}, "No room"},
		"a condition that is not changed":         {scheduled(2, binding.MessageScheduled+note), outcome{message: "-"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bound := newBinding(func(b *workv1alpha2.ResourceBinding) { b.Generation, b.Status.Conditions = 2, test.stored })
			v := test.outcome
			switch v.message {
			case "":
				v.message = binding.MessageScheduled
			case "-":
				v.message = ""
			}
			if diff := cmp.Diff(test.want, v.withFailedEstimators(bound).message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoteIsBounded(t *testing.T) {
	failures := map[string]string{}
	for i := range 1000 {
		failures[fmt.Sprintf("member-%d", i)] = fmt.Sprintf("estimator: connecting to 10.0.0.%d: connection refused", i)
	}
	message := withEstimatorNote(binding.MessageScheduled, failures)
	if len(message) > conditions.MaxMessageBytes || !strings.HasSuffix(message, " more clusters") {
		t.Errorf("%d bytes: %s", len(message), message)
	}
	if !isSameExceptNote(message, binding.MessageScheduled) {
		t.Error("the note changes the message before it")
	}
}
