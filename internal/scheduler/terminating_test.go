package scheduler

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

func terminatingMember(name string) *clusterv1alpha1.Cluster {
	cluster := member(name)
	cluster.DeletionTimestamp = &noon
	return cluster
}

func spreadOverTwo(bound *workv1alpha2.ResourceBinding) {
	bound.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{
		{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 2, MaxGroups: 2}}
	bound.Spec.Placement.ReplicaScheduling.ReplicaDivisionPreference = policyv1alpha1.ReplicaDivisionPreferenceAggregated
}

func TestTerminatingTargetIsRemovedDespiteFailures(t *testing.T) {
	cases := map[string]struct {
		change    func(*workv1alpha2.ResourceBinding)
		rejection error
		reason    string
		message   []string
	}{
		"fewer clusters than the spread constraint requires": {change: spreadOverTwo, reason: workv1alpha2.BindingReasonSchedulerError,
			message: []string{"2 clusters wanted, 1 feasible (member1); cluster member2: being removed. 2 of 4 replicas are placed: {member1:2}."}},
		"the API server rejects the new placement": {change: func(*workv1alpha2.ResourceBinding) {},
			rejection: &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: "QuotaExceeded", Message: "over quota"}},
			reason:    workv1alpha2.BindingReasonQuotaExceeded, message: []string{"over quota"}},
		"there is no placement": {change: func(bound *workv1alpha2.ResourceBinding) { bound.Spec.Placement = nil },
			reason: workv1alpha2.BindingReasonSchedulerError, message: []string{"the binding has no placement"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bound := newBinding(divided, tc.change)
			bound.Spec.Clusters = targets("member1", "member2")
			l := newTestScheduler(t, withoutVersion(bound), member("member1"), terminatingMember("member2"))
			if tc.rejection != nil {
				l.rejectOnce["clusters"] = tc.rejection
			}
			_, after, stored := l.pass(t)
			if diff := cmp.Diff(targets("member1"), stored.Spec.Clusters); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			if after == 0 {
				t.Error("the binding is not retried")
			}
			condition := conditions.Get(stored.Status.Conditions, workv1alpha2.Scheduled)
			if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != tc.reason {
				t.Fatalf("condition %+v", condition)
			}
			for _, part := range tc.message {
				if !strings.Contains(condition.Message, part) {
					t.Errorf("%q is missing in %q", part, condition.Message)
				}
			}
			events := l.recordedEvents()
			if len(events) != 2 || !strings.Contains(events[0], condition.Message) {
				t.Errorf("events %q, want the message on the binding and on the template", events)
			}
			if tc.rejection != nil {
				return
			}
			if writes, _, _ := l.pass(t); len(writes) != 0 || len(l.recordedEvents()) != 0 {
				t.Errorf("the second pass writes %v", writes)
			}
		})
	}
}

func TestMissingReportOfAnotherScheduler(t *testing.T) {
	foreign := func(bound *workv1alpha2.ResourceBinding) { bound.Spec.SchedulerName = "volcano" }
	l := newTestScheduler(t, withoutVersion(newBinding(foreign)), member("member1"))
	clock := noon.Time
	l.now = func() time.Time { return clock }
	if writes, after, _ := l.pass(t); len(writes) != 0 || after != 10*time.Second {
		t.Errorf("writes %v, again after %s", writes, after)
	}
	clock = clock.Add(9 * time.Second)
	if writes, after, _ := l.pass(t); len(writes) != 0 || after != time.Second {
		t.Errorf("writes %v, again after %s", writes, after)
	}
	clock = clock.Add(time.Second)
	_, after, stored := l.pass(t)
	want := &metav1.Condition{
		Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: workv1alpha2.BindingReasonSchedulerNotReporting,
		Message: `no scheduler named "volcano" has reported, so the object is not scheduled: ` +
			"start a scheduler with --scheduler-name=volcano, or correct spec.schedulerName of the policy",
		ObservedGeneration: 1,
	}
	got := conditions.Get(stored.Status.Conditions, workv1alpha2.Scheduled)
	if got == nil || after != 0 {
		t.Fatalf("condition %v, again after %s", got, after)
	}
	want.LastTransitionTime = got.LastTransitionTime
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if events := l.recordedEvents(); len(events) != 2 {
		t.Errorf("events %q, want the binding and the template", events)
	}
	if writes, after, _ := l.pass(t); len(writes) != 0 || after != 0 {
		t.Errorf("writes %v again, after %s", writes, after)
	}
}

func TestReportTimeoutPerGeneration(t *testing.T) {
	bound := newBinding(func(bound *workv1alpha2.ResourceBinding) { bound.Spec.SchedulerName = "volcano" })
	l := newTestScheduler(t, withoutVersion(newBinding()), member("member1"))
	clock := noon.Time
	l.now = func() time.Time { return clock }
	if left, first := l.remainingReportTime(bound); left != 10*time.Second || !first {
		t.Errorf("at first %s remain, first %v", left, first)
	}
	clock = clock.Add(time.Minute)
	if left, first := l.remainingReportTime(bound); left > 0 || first {
		t.Errorf("one minute later %s remain, first %v", left, first)
	}
	bound.Generation++
	if left, first := l.remainingReportTime(bound); left != 10*time.Second || !first {
		t.Errorf("for another generation %s remain, first %v", left, first)
	}
	bound.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, ObservedGeneration: bound.Generation}}
	if _, first := l.remainingReportTime(bound); first || len(l.unreported.waiting) != 0 {
		t.Errorf("a present report counts as missing: %v", l.unreported.waiting)
	}
}
