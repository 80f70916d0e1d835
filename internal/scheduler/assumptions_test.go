package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators"
	"karmada.io/karmada/internal/domain/conditions"
)

// memberWithPods returns a cluster with free Pods.
func memberWithPods(name, pods string) *clusterv1alpha1.Cluster {
	cluster := member(name)
	cluster.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{"pods": resource.MustParse(pods)}}
	return cluster
}

// aggregated divides replicas by the capacity of clusters.
func aggregated(bound *workv1alpha2.ResourceBinding) {
	divided(bound)
	bound.Spec.Placement.ReplicaScheduling.ReplicaDivisionPreference = "Aggregated"
}

func named(name string) func(*workv1alpha2.ResourceBinding) {
	return func(bound *workv1alpha2.ResourceBinding) {
		bound.Name, bound.UID, bound.Spec.Resource.Name = name, "", name
	}
}

// schedulesSecond schedules two bindings with 4 replicas each in a cluster with 6 free Pods, and
// reports whether the second binding is scheduled. change is called between them.
func schedulesSecond(t *testing.T, protected bool, change func(l *testScheduler, first *workv1alpha2.ResourceBinding)) bool {
	t.Helper()
	l := newTestScheduler(t, withoutVersion(newBinding(aggregated)), memberWithPods("member1", "6"))
	l.estimators = []estimators.Row{{Name: "resource summary", Estimator: estimators.Summary{}}}
	l.assumptions = newAssumptions(protected)
	if _, _, stored := l.pass(t); len(stored.Spec.Clusters) != 1 {
		t.Fatalf("the first binding is not scheduled: %+v", stored.Status)
	} else if change != nil {
		change(l, stored)
	}
	second := withoutVersion(newBinding(aggregated, named("second")))
	if err := l.karmada.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reconcile(t.Context(), requestFor("second")); err != nil {
		t.Fatal(err)
	}
	if err := l.karmada.Get(t.Context(), requestFor("second").NamespacedName, second); err != nil {
		t.Fatal(err)
	}
	return conditions.HasStatus(second.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionTrue)
}

func TestOvercommitProtection(t *testing.T) {
	tests := map[string]struct {
		disabled bool
		change   func(l *testScheduler, first *workv1alpha2.ResourceBinding)
		want     bool
	}{
		"the first workload uses the free Pods":     {},
		"without protection both use the same Pods": {disabled: true, want: true},
		"the first workload is healthy":             {change: becomesHealthy("member1"), want: true},
		"the first workload is healthy elsewhere":   {change: becomesHealthy("member2")},
		"the first binding is deleted":              {change: func(l *testScheduler, _ *workv1alpha2.ResourceBinding) { l.stopTracking(requestFor("web-deployment")) }, want: true},
		"the first binding was scheduled a time ago": {change: func(l *testScheduler, _ *workv1alpha2.ResourceBinding) {
			l.now = func() time.Time { return noonPlus(5).Time }
		}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := schedulesSecond(t, !test.disabled, test.change); got != test.want {
				t.Errorf("the second binding is scheduled: %t, want %t", got, test.want)
			}
		})
	}
}

func becomesHealthy(cluster string) func(*testScheduler, *workv1alpha2.ResourceBinding) {
	return func(l *testScheduler, first *workv1alpha2.ResourceBinding) {
		newer := first.DeepCopy()
		newer.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: cluster, Health: workv1alpha2.ResourceHealthy}}
		l.assumptions.releaseHealthy(first, newer)
	}
}

// A second pass over a scheduled binding does not count the replicas of this binding twice.
func TestBindingDoesNotCountAgainstItself(t *testing.T) {
	l := newTestScheduler(t, withoutVersion(newBinding(aggregated)), memberWithPods("member1", "6"))
	l.estimators, l.assumptions = []estimators.Row{{Name: "resource summary", Estimator: estimators.Summary{}}}, newAssumptions(true)
	_, _, stored := l.pass(t)
	stored.Spec.Replicas = 6
	stored.Generation++
	if err := l.karmada.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	_, _, stored = l.pass(t)
	want := []workv1alpha2.TargetCluster{{Name: "member1", Replicas: 6}}
	if diff := cmp.Diff(want, stored.Spec.Clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	assumed, _ := l.assumptions.assumedWorkloads([]*clusterv1alpha1.Cluster{member("member1")}, requestFor("other"), noon.Time)
	other := assumed["member1"]
	if len(other) != 1 || other[0].Components[0].Replicas != 6 {
		t.Errorf("assumed %+v", other)
	}
}
