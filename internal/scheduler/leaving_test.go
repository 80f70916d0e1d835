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

func leavingMember(name string) *clusterv1alpha1.Cluster {
	cluster := member(name)
	cluster.DeletionTimestamp = &noon
	return cluster
}

func spreadOverTwo(of *workv1alpha2.ResourceBinding) {
	of.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{
		{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 2, MaxGroups: 2}}
	of.Spec.Placement.ReplicaScheduling.ReplicaDivisionPreference = policyv1alpha1.ReplicaDivisionPreferenceAggregated
}

func TestAClusterThatIsBeingRemovedIsLeftWhateverElseFails(t *testing.T) {
	cases := map[string]struct {
		change  func(*workv1alpha2.ResourceBinding)
		refuse  error
		reason  string
		message []string
	}{
		"one cluster less than the spread constraint wants": {change: spreadOverTwo, reason: workv1alpha2.BindingReasonSchedulerError,
			message: []string{"2 clusters wanted, 1 feasible (member1); cluster member2: being removed. 2 of 4 replicas are placed: {member1:2}."}},
		"the API server refuses the new placement": {change: func(*workv1alpha2.ResourceBinding) {},
			refuse: &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: "QuotaExceeded", Message: "over quota"}},
			reason: workv1alpha2.BindingReasonQuotaExceeded, message: []string{"over quota"}},
		"there is no placement": {change: func(of *workv1alpha2.ResourceBinding) { of.Spec.Placement = nil },
			reason: workv1alpha2.BindingReasonSchedulerError, message: []string{"the binding has no placement"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := bound(divided, tc.change)
			of.Spec.Clusters = targets("member1", "member2")
			l := newLoop(t, unversioned(of), member("member1"), leavingMember("member2"))
			if tc.refuse != nil {
				l.refuse["clusters"] = tc.refuse
			}
			_, after, stored := l.pass(t)
			if diff := cmp.Diff(targets("member1"), stored.Spec.Clusters); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			if after == 0 {
				t.Error("it is not tried again")
			}
			told := conditions.Get(stored.Status.Conditions, workv1alpha2.Scheduled)
			if told == nil || told.Status != metav1.ConditionFalse || told.Reason != tc.reason {
				t.Fatalf("condition %+v", told)
			}
			for _, part := range tc.message {
				if !strings.Contains(told.Message, part) {
					t.Errorf("%q is missing in %q", part, told.Message)
				}
			}
			events := l.told()
			if len(events) != 2 || !strings.Contains(events[0], told.Message) {
				t.Errorf("events %q, want the message on the binding and on the template", events)
			}
			if tc.refuse != nil {
				return
			}
			if writes, _, _ := l.pass(t); len(writes) != 0 || len(l.told()) != 0 {
				t.Errorf("the second pass writes %v", writes)
			}
		})
	}
}

func TestAnotherSchedulerThatDoesNotReportIsNamed(t *testing.T) {
	foreign := func(of *workv1alpha2.ResourceBinding) { of.Spec.SchedulerName = "volcano" }
	l := newLoop(t, unversioned(bound(foreign)), member("member1"))
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
	if events := l.told(); len(events) != 2 {
		t.Errorf("told %q, want the binding and the template", events)
	}
	if writes, after, _ := l.pass(t); len(writes) != 0 || after != 0 {
		t.Errorf("writes %v again, after %s", writes, after)
	}
}

func TestAnotherSchedulerHasTimeForEachGeneration(t *testing.T) {
	of := bound(func(of *workv1alpha2.ResourceBinding) { of.Spec.SchedulerName = "volcano" })
	l := newLoop(t, unversioned(bound()), member("member1"))
	clock := noon.Time
	l.now = func() time.Time { return clock }
	if left, first := l.awaitForeign(of); left != 10*time.Second || !first {
		t.Errorf("the first look leaves %s, first %v", left, first)
	}
	clock = clock.Add(time.Minute)
	if left, first := l.awaitForeign(of); left > 0 || first {
		t.Errorf("a minute later %s are left, first %v", left, first)
	}
	of.Generation++
	if left, first := l.awaitForeign(of); left != 10*time.Second || !first {
		t.Errorf("another generation leaves %s, first %v", left, first)
	}
	of.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, ObservedGeneration: of.Generation}}
	if _, first := l.awaitForeign(of); first || len(l.foreign.since) != 0 {
		t.Errorf("a report is awaited that is there: %v", l.foreign.since)
	}
}
