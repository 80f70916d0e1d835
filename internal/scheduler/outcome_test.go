package scheduler

import (
	"errors"
	"net/http"
	"testing"
	"time"

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

var noon = metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))

func at(minutes int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))
}

func member(name string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
	}
	return cluster
}

func bound(change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	of := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", UID: "b1", Generation: 1, ResourceVersion: "10",
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p1"}},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "t1"},
			Replicas: 4, ReplicaRequirements: &workv1alpha2.ReplicaRequirements{},
			Placement: &policyv1alpha1.Placement{},
		},
	}
	for _, apply := range change {
		apply(of)
	}
	return of
}

func divided(of *workv1alpha2.ResourceBinding) {
	of.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
	}
}

func inGroups(of *workv1alpha2.ResourceBinding) {
	of.Spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"none"}}},
		{AffinityName: "second", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"member1"}}},
	}
}

func targets(names ...string) []workv1alpha2.TargetCluster {
	var list []workv1alpha2.TargetCluster
	for _, name := range names {
		list = append(list, workv1alpha2.TargetCluster{Name: name, Replicas: 2})
	}
	return list
}

// written is what an API server makes of desired: a changed spec is another
// generation.
func written(t *testing.T, stored, desired binding.Object) binding.Object {
	t.Helper()
	answer := binding.Copy(desired)
	if !cmp.Equal(stored.BindingSpec(), desired.BindingSpec(), cmpopts.EquateEmpty()) {
		answer.SetGeneration(stored.GetGeneration() + 1)
	}
	return answer
}

// run goes through a whole pass and returns what is stored after each write.
func run(t *testing.T, stored binding.Object, now metav1.Time, clusters ...*clusterv1alpha1.Cluster) (placed, told binding.Object, v verdict) {
	t.Helper()
	w := newWorld()
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
			Spec: stored.BindingSpec(), Status: stored.BindingStatus(), AppliedPlacement: applied(stored), Clusters: w.snapshot().clusters,
		})
		var desired binding.Object
		desired, v = outcome(stored, result, err)
		placed = written(t, stored, desired)
	case placement.ActionObserve:
		v = settled(stored)
	default:
		return stored, stored, verdict{}
	}
	return placed, report(placed, v, placed.GetGeneration(), now), v
}

func TestAPassThatFindsTheResultOfAnotherWritesNothing(t *testing.T) {
	cases := map[string]struct {
		of       binding.Object
		clusters []*clusterv1alpha1.Cluster
		affinity string
	}{
		"duplicated": {bound(), []*clusterv1alpha1.Cluster{member("member1"), member("member2")}, ""},
		"divided":    {bound(divided), []*clusterv1alpha1.Cluster{member("member1"), member("member2")}, ""},
		"in groups":  {bound(inGroups), []*clusterv1alpha1.Cluster{member("member1"), member("member2")}, "second"},
		"divided in groups": {
			bound(divided, inGroups), []*clusterv1alpha1.Cluster{member("member1"), member("member2")}, "second"},
		"of either scope": {&workv1alpha2.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1},
			Spec:       bound().Spec,
		}, []*clusterv1alpha1.Cluster{member("member1")}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			placed, told, _ := run(t, tc.of, noon, tc.clusters...)
			if len(placed.BindingSpec().Clusters) == 0 {
				t.Fatal("nothing was placed")
			}
			status := told.BindingStatus()
			if status.SchedulerObservedGeneration != 2 || told.GetGeneration() != 2 {
				t.Errorf("observed generation %d of %d, want the one after the result", status.SchedulerObservedGeneration, told.GetGeneration())
			}
			if status.SchedulerObservedAffinityName != tc.affinity {
				t.Errorf("affinity group %q, want %q", status.SchedulerObservedAffinityName, tc.affinity)
			}
			if !status.LastScheduledTime.Equal(&noon) {
				t.Errorf("scheduled at %v", status.LastScheduledTime)
			}
			later := at(5)
			placedAgain, toldAgain, _ := run(t, told, later, tc.clusters...)
			if diff := cmp.Diff(told, placedAgain); diff != "" {
				t.Errorf("the second pass writes the result:\n%s", diff)
			}
			if diff := cmp.Diff(told, toldAgain); diff != "" {
				t.Errorf("the second pass writes the status:\n%s", diff)
			}
		})
	}
}

func TestNoFittingCluster(t *testing.T) {
	t.Run("empties a placement that the user changed and is not retried", func(t *testing.T) {
		of := bound(func(of *workv1alpha2.ResourceBinding) {
			of.Spec.Clusters = targets("gone")
			of.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"none"}}
		})
		placed, told, v := run(t, of, noon, member("member1"))
		if len(placed.BindingSpec().Clusters) != 0 || applied(placed) == "" {
			t.Errorf("stored %v for %q", placed.BindingSpec().Clusters, applied(placed))
		}
		if v.retry != never {
			t.Errorf("retry %v", v.retry)
		}
		want := metav1.Condition{
			Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: workv1alpha2.BindingReasonNoClusterFit, ObservedGeneration: 2,
			Message:            "0/1 clusters are available: no cluster matches the cluster affinity (clusterNames none).",
			LastTransitionTime: noon,
		}
		if diff := cmp.Diff(&want, conditions.Get(told.BindingStatus().Conditions, workv1alpha2.Scheduled)); diff != "" {
			t.Error(diff)
		}
		if status := told.BindingStatus(); status.SchedulerObservedGeneration != 0 || status.LastScheduledTime != nil {
			t.Errorf("a failure counts as scheduled: %+v", status)
		}
	})
	t.Run("keeps a placement that only clusters changed, and says so", func(t *testing.T) {
		_, before, _ := run(t, bound(), noon, member("member1"))
		tainted := member("member1")
		tainted.Labels = map[string]string{"changed": "yes"}
		evicting := binding.Copy(before)
		evicting.BindingSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "member1"}}
		placed, told, v := run(t, evicting, at(1), tainted)
		if diff := cmp.Diff(before.BindingSpec().Clusters, placed.BindingSpec().Clusters); diff != "" {
			t.Errorf("the previous placement is gone:\n%s", diff)
		}
		condition := conditions.Get(told.BindingStatus().Conditions, workv1alpha2.Scheduled)
		want := "0/1 clusters are available: cluster member1: eviction in progress. The previous placement is kept."
		if condition.Message != want || condition.Status != metav1.ConditionFalse || v.retry != never {
			t.Errorf("condition %+v, retry %v", condition, v.retry)
		}
	})
	t.Run("does not say that a placement is kept which has no clusters any more", func(t *testing.T) {
		_, before, _ := run(t, bound(), noon, member("member1"))
		evicted := binding.Copy(before)
		evicted.BindingSpec().Clusters = nil
		evicted.BindingSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "member1"}}
		_, _, v := run(t, evicted, at(1), member("member1"))
		if want := "0/1 clusters are available: cluster member1: eviction in progress."; v.message != want {
			t.Errorf("message %q, want %q", v.message, want)
		}
	})
}

func TestVerdicts(t *testing.T) {
	cases := map[string]struct {
		err    error
		reason string
		retry  retry
	}{
		"no error is a success":                      {nil, workv1alpha2.BindingReasonSuccess, never},
		"no fitting cluster waits for events":        {&placement.FitError{}, workv1alpha2.BindingReasonNoClusterFit, never},
		"too little room waits for room":             {&placement.UnschedulableError{}, workv1alpha2.BindingReasonUnschedulable, whenRoom},
		"a missing placement is retried":             {placement.ErrNoPlacement, workv1alpha2.BindingReasonSchedulerError, later},
		"a spread that cannot be reached is retried": {errors.New("spread"), workv1alpha2.BindingReasonSchedulerError, later},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := verdictOf(tc.err)
			if v.reason != tc.reason || v.retry != tc.retry || !errors.Is(v.err, tc.err) {
				t.Errorf("verdict %+v", v)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	resource := schema.GroupResource{Group: workv1alpha2.GroupName, Resource: "resourcebindings"}
	quota := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: "QuotaExceeded", Message: "over quota"}}
	terminating := apierrors.NewForbidden(resource, "web", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		before verdict
		err    error
		reason string
		retry  retry
	}{
		"quota is told by its name and retried":   {verdictOf(nil), quota, workv1alpha2.BindingReasonQuotaExceeded, later},
		"another refusal is an error":             {verdictOf(nil), apierrors.NewForbidden(resource, "web", errors.New("no")), workv1alpha2.BindingReasonSchedulerError, later},
		"a conflict is looked at again at once":   {verdictOf(nil), apierrors.NewConflict(resource, "web", errors.New("newer")), workv1alpha2.BindingReasonSchedulerError, soon},
		"a terminating namespace is not retried":  {verdictOf(nil), terminating, workv1alpha2.BindingReasonSchedulerError, never},
		"a binding that is gone is not retried":   {verdictOf(nil), apierrors.NewNotFound(resource, "web"), workv1alpha2.BindingReasonSchedulerError, never},
		"no fit that cannot be stored is retried": {verdictOf(&placement.FitError{}), quota, workv1alpha2.BindingReasonNoClusterFit, later},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := tc.before.refused(bound(), tc.err)
			if v.reason != tc.reason || v.retry != tc.retry || !errors.Is(v.err, tc.err) || v.message == "" {
				t.Errorf("verdict %+v", v)
			}
		})
	}
}

func TestOutcomeKeepsWhatOtherErrorsFind(t *testing.T) {
	of := bound(func(of *workv1alpha2.ResourceBinding) { of.Spec.Clusters = targets("member1") })
	desired, v := outcome(of, placement.Result{Clusters: targets("member1")}, &placement.UnschedulableError{})
	if diff := cmp.Diff(binding.Object(of), desired); diff != "" {
		t.Errorf("a failure changes the binding:\n%s", diff)
	}
	if v.placed {
		t.Error("a failure counts as placed")
	}
}

func TestTheOrderOfTargetsIsNoDifference(t *testing.T) {
	cases := map[string]struct {
		a, b []workv1alpha2.TargetCluster
		want bool
	}{
		"none and empty are the same":     {nil, []workv1alpha2.TargetCluster{}, true},
		"another order is the same":       {targets("a", "b"), targets("b", "a"), true},
		"another cluster is not":          {targets("a", "b"), targets("a", "c"), false},
		"another number is not":           {targets("a"), []workv1alpha2.TargetCluster{{Name: "a", Replicas: 3}}, false},
		"one more is not":                 {targets("a"), targets("a", "b"), false},
		"one that is listed twice is not": {targets("a", "b"), targets("a", "a"), false},
		"twice in the stored one is not":  {targets("a", "a"), targets("a", "b"), false},
		"other components are not": {targets("a"), []workv1alpha2.TargetCluster{
			{Name: "a", Replicas: 2, Components: []workv1alpha2.TargetComponent{{Name: "x", Replicas: 1}}}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := sameTargets(tc.a, tc.b); got != tc.want {
				t.Errorf("sameTargets = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAResultThatIsStillRight(t *testing.T) {
	condition := func(status metav1.ConditionStatus, generation int64) func(*workv1alpha2.ResourceBinding) {
		return func(of *workv1alpha2.ResourceBinding) {
			of.Generation = 5
			of.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: status, Reason: "Any", ObservedGeneration: generation}}
		}
	}
	onMember := func(of *workv1alpha2.ResourceBinding) { of.Spec.Clusters = targets("member1") }
	scheduled := func(of *workv1alpha2.ResourceBinding) { of.Status.LastScheduledTime = &noon }
	cases := map[string]struct {
		of     binding.Object
		status metav1.ConditionStatus
		at     *metav1.Time
	}{
		"is said of the new generation": {bound(onMember, scheduled, condition(metav1.ConditionTrue, 4)), metav1.ConditionTrue, &noon},
		"ends a failure that the user has undone": {
			bound(onMember, scheduled, condition(metav1.ConditionFalse, 4)), metav1.ConditionTrue, &noon},
		"does not end a failure of this very generation": {
			bound(onMember, scheduled, condition(metav1.ConditionFalse, 5)), metav1.ConditionFalse, &noon},
		"ends the report that no scheduler reports": {bound(onMember, scheduled, condition(metav1.ConditionFalse, 5),
			func(of *workv1alpha2.ResourceBinding) {
				of.Status.Conditions[0].Reason = workv1alpha2.BindingReasonSchedulerNotReporting
			}), metav1.ConditionTrue, &noon},
		"is no success without targets": {bound(scheduled, condition(metav1.ConditionFalse, 4)), metav1.ConditionFalse, &noon},
		"gets a time if it has none":    {bound(onMember, condition(metav1.ConditionTrue, 4)), metav1.ConditionTrue, new(at(9))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := report(tc.of, settled(tc.of), 5, at(9)).BindingStatus()
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

func TestAResultOfAnUnknownGroupIsMadeAnew(t *testing.T) {
	_, told, _ := run(t, bound(divided, inGroups), noon, member("member1"))
	told.BindingStatus().SchedulerObservedAffinityName = ""
	told.BindingStatus().SchedulerObservedGeneration = 1
	placed, repaired, _ := run(t, told, at(1), member("member1"))
	if diff := cmp.Diff(told, placed); diff != "" {
		t.Errorf("the result changed:\n%s", diff)
	}
	if got := repaired.BindingStatus().SchedulerObservedAffinityName; got != "second" {
		t.Errorf("affinity group %q", got)
	}
}

func TestARequestedRescheduleIsDated(t *testing.T) {
	_, told, _ := run(t, bound(), noon, member("member1"))
	told.BindingSpec().RescheduleTriggeredAt = new(at(1))
	_, again, _ := run(t, told, at(2), member("member1"))
	if diff := cmp.Diff(new(at(2)), again.BindingStatus().LastScheduledTime); diff != "" {
		t.Error(diff)
	}
}
