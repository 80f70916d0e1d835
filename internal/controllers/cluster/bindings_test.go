package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/loop"
)

// newBinding returns a binding of 4 divided replicas in member1, which is being removed, and in
// member2.
func newBinding(change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "b1", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p1"}},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "t1"},
			Replicas: 4, Clusters: []workv1alpha2.TargetCluster{{Name: "member1", Replicas: 1}, {Name: "member2", Replicas: 3}},
			Placement: &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}},
		},
	}
	for _, apply := range change {
		apply(bound)
	}
	return bound
}

func TestRemovedClusterIsRemovedFromUnscheduledBindings(t *testing.T) {
	unclaimed := func(b *workv1alpha2.ResourceBinding) { b.Labels = nil }
	suspended := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
	}
	foreign := func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "volcano" }
	copied := func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement.ReplicaScheduling = nil }
	deleted := func(b *workv1alpha2.ResourceBinding) {
		b.Labels, b.DeletionTimestamp, b.Finalizers = nil, &metav1.Time{Time: time.Now()}, []string{"test/stays"}
	}
	const lacking = ". 3 of 4 replicas are placed: {member2:3}."
	removedBecause := func(reason string) string {
		return "cluster member1 is being removed, and was removed from the binding because " + reason
	}
	tests := map[string]struct {
		bound    binding.Object
		elapsed  time.Duration
		message  string // of the event; empty if the binding keeps the cluster
		unplaced bool
	}{
		"a binding without a policy":                {bound: newBinding(unclaimed), message: removedBecause("no policy claims its object") + lacking, unplaced: true},
		"suspended scheduling":                      {bound: newBinding(suspended), message: removedBecause("its scheduling is suspended") + lacking, unplaced: true},
		"duplicated replicas need no condition":     {bound: newBinding(unclaimed, copied), message: removedBecause("no policy claims its object")},
		"the default scheduler before the deadline": {bound: newBinding(), elapsed: domain.BindingRemovalDelay - 2*time.Second},
		"the default scheduler after the deadline":  {bound: newBinding(), elapsed: domain.BindingRemovalDelay, message: removedBecause("scheduler default-scheduler did not remove it within 30s") + lacking, unplaced: true},
		"another scheduler before the deadline":     {bound: newBinding(foreign)},
		"another scheduler after the deadline":      {bound: newBinding(foreign), elapsed: domain.BindingRemovalDelay, message: removedBecause("scheduler volcano did not remove it within 30s") + lacking, unplaced: true},
		"a binding in deletion":                     {bound: newBinding(deleted)},
		"a ClusterResourceBinding": {bound: &workv1alpha2.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "b1"}, Spec: newBinding().Spec,
		}, message: removedBecause("no policy claims its object") + lacking, unplaced: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			leaving := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "member1", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}}}
			karmada := newStore(t, tc.bound, leaving)
			if err := karmada.Delete(t.Context(), leaving); err != nil {
				t.Fatal(err)
			}
			recorder, clock := record.NewFakeRecorder(10), time.Now().Add(tc.elapsed)
			r := &reconciler{
				options: DefaultOptions(), karmada: karmada, live: karmada, events: loop.NewEvents(recorder), now: func() time.Time { return clock },
			}
			for range 2 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "member1"}}); err != nil {
					t.Fatal(err)
				}
			}
			stored := binding.New(binding.IsNamespaced(tc.bound))
			if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(tc.bound), stored); err != nil {
				t.Fatal(err)
			}
			want, wantEvents := "member1:1, member2:3", []string(nil)
			if tc.message != "" {
				want, wantEvents = "member2:3", []string{"Normal ClusterRemoved " + tc.message, "Normal ClusterRemoved " + tc.message}
			}
			if got := placement.DescribeTargets(stored.BindingSpec()); got != want {
				t.Errorf("targets {%s}, want {%s}", got, want)
			}
			close(recorder.Events)
			var recorded []string
			for event := range recorder.Events {
				recorded = append(recorded, event)
			}
			if diff := cmp.Diff(wantEvents, recorded); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			scheduled := conditions.Get(stored.BindingStatus().Conditions, workv1alpha2.Scheduled)
			if (scheduled != nil) != tc.unplaced || tc.unplaced && scheduled.Message != tc.message {
				t.Errorf("condition %+v", scheduled)
			}
		})
	}
}

func TestClusterInRemovalReportsWhatItWaitsFor(t *testing.T) {
	leaving := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "member1", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}},
		Status:     clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady"}}},
	}
	works := newWork("member1", "web", false)
	karmada := newStore(t, leaving, newBinding(), works, withFinalizer(newNamespace("karmada-es-member1")))
	if err := karmada.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	r, clock := newReconciler(karmada), time.Now().Add(domain.BlockerNamingDelay)
	r.now = func() time.Time { return clock }
	expectMessage := func(ready metav1.ConditionStatus, message string) {
		t.Helper()
		for range 2 {
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(leaving)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(leaving), leaving); err != nil {
			t.Fatal(err)
		}
		if !conditions.HasStatus(leaving.Status.Conditions, clusterv1alpha1.ClusterConditionReady, ready) {
			t.Errorf("Ready is not %s: %+v", ready, leaving.Status.Conditions)
		}
		condition := conditions.Get(leaving.Status.Conditions, clusterv1alpha1.ClusterConditionLeaving)
		if condition == nil || condition.Message != message {
			t.Errorf("Leaving is %+v, want message %q", condition, message)
		}
	}
	expectMessage(metav1.ConditionTrue, "remaining Works: karmada-es-member1/web: their objects are being deleted in the cluster, see the events of the Works")
	if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(works), works); err != nil {
		t.Fatal(err)
	}
	works.Finalizers = nil
	if err := karmada.Update(t.Context(), works); err != nil {
		t.Fatal(err)
	}
	expectMessage(metav1.ConditionFalse, "remaining bindings: shop/web: its scheduler removes the cluster, or karmada-controller-manager does 30s after the deletion")
}
