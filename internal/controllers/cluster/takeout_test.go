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
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/domain/binding"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/placement"
)

// boundToTwo is a binding of 4 divided replicas in member1, which leaves, and
// member2.
func boundToTwo(change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
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

func TestAClusterThatLeavesIsTakenOutOfBindingsThatNoSchedulerServes(t *testing.T) {
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
	out := func(why string) string {
		return "cluster member1 is being removed and was taken out of the binding, because " + why
	}
	tests := map[string]struct {
		bound binding.Object
		waits time.Duration
		says  string // of the event; empty if the binding keeps the cluster
		lacks bool
	}{
		"its policy is gone":                      {bound: boundToTwo(unclaimed), says: out("no policy claims its object") + lacking, lacks: true},
		"its scheduling is suspended":             {bound: boundToTwo(suspended), says: out("its scheduling is suspended") + lacking, lacks: true},
		"a copy less is no lack":                  {bound: boundToTwo(unclaimed, copied), says: out("no policy claims its object")},
		"its scheduler has time":                  {bound: boundToTwo(), waits: domain.TakeOutAfter - 2*time.Second},
		"its scheduler has had time":              {bound: boundToTwo(), waits: domain.TakeOutAfter, says: out("scheduler default-scheduler did not do so within 30s") + lacking, lacks: true},
		"another scheduler has time":              {bound: boundToTwo(foreign)},
		"another scheduler has had time":          {bound: boundToTwo(foreign), waits: domain.TakeOutAfter, says: out("scheduler volcano did not do so within 30s") + lacking, lacks: true},
		"one that is being deleted is left alone": {bound: boundToTwo(deleted)},
		"of either scope": {bound: &workv1alpha2.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "b1"}, Spec: boundToTwo().Spec,
		}, says: out("no policy claims its object") + lacking, lacks: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			leaving := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "member1", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}}}
			karmada := store(t, tc.bound, leaving)
			if err := karmada.Delete(t.Context(), leaving); err != nil {
				t.Fatal(err)
			}
			recorder, clock := record.NewFakeRecorder(10), time.Now().Add(tc.waits)
			r := &reconciler{
				options: DefaultOptions(), karmada: karmada, live: karmada, events: observe.NewEvents(recorder), now: func() time.Time { return clock },
			}
			for range 2 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "member1"}}); err != nil {
					t.Fatal(err)
				}
			}
			stored := binding.New(binding.Namespaced(tc.bound))
			if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(tc.bound), stored); err != nil {
				t.Fatal(err)
			}
			want, events := "member1:1, member2:3", []string(nil)
			if tc.says != "" {
				want, events = "member2:3", []string{"Normal ClusterRemoved " + tc.says, "Normal ClusterRemoved " + tc.says}
			}
			if got := placement.DescribeTargets(stored.BindingSpec()); got != want {
				t.Errorf("targets {%s}, want {%s}", got, want)
			}
			close(recorder.Events)
			var told []string
			for event := range recorder.Events {
				told = append(told, event)
			}
			if diff := cmp.Diff(events, told); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			scheduled := conditions.Get(stored.BindingStatus().Conditions, workv1alpha2.Scheduled)
			if (scheduled != nil) != tc.lacks || tc.lacks && scheduled.Message != tc.says {
				t.Errorf("condition %+v", scheduled)
			}
		})
	}
}

func TestAClusterThatLeavesSaysWhatItWaitsFor(t *testing.T) {
	leaving := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "member1", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}},
		Status:     clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady"}}},
	}
	works := workOf("member1", "web", false)
	karmada := store(t, leaving, boundToTwo(), works, staying(namespace("karmada-es-member1")))
	if err := karmada.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	r, clock := reconcilerOver(karmada), time.Now().Add(domain.NameHoldersAfter)
	r.now = func() time.Time { return clock }
	look := func(ready metav1.ConditionStatus, message string) {
		t.Helper()
		for range 2 {
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(leaving)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(leaving), leaving); err != nil {
			t.Fatal(err)
		}
		if !conditions.Is(leaving.Status.Conditions, clusterv1alpha1.ClusterConditionReady, ready) {
			t.Errorf("Ready is not %s: %+v", ready, leaving.Status.Conditions)
		}
		says := conditions.Get(leaving.Status.Conditions, clusterv1alpha1.ClusterConditionLeaving)
		if says == nil || says.Message != message {
			t.Errorf("Leaving is %+v, want message %q", says, message)
		}
	}
	look(metav1.ConditionTrue, "remaining Works: karmada-es-member1/web: their objects are being deleted in the cluster, see the events of the Works")
	if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(works), works); err != nil {
		t.Fatal(err)
	}
	works.Finalizers = nil
	if err := karmada.Update(t.Context(), works); err != nil {
		t.Fatal(err)
	}
	look(metav1.ConditionFalse, "remaining bindings: shop/web: its scheduler takes it out, or karmada-controller-manager 30s after the deletion")
}
