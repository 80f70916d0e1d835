package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators"
	"karmada.io/karmada/internal/domain/capacity"
)

// interruptedEstimator estimates by resource summaries, and then calls a function.
type interruptedEstimator struct{ then func() }

func (e interruptedEstimator) Estimate(ctx context.Context, demand capacity.Demand, clusters []*clusterv1alpha1.Cluster, report estimators.Report) {
	estimators.Summary{}.Estimate(ctx, demand, clusters, report)
	e.then()
}

// reservedReplicas returns the replicas that are assumed in a cluster.
func (l *testScheduler) reservedReplicas(cluster string) (replicas []int32) {
	assumed, _ := l.assumptions.assumedWorkloads([]*clusterv1alpha1.Cluster{member(cluster)}, requestFor("none"), noon.Time)
	for _, workload := range assumed[cluster] {
		replicas = append(replicas, workload.Components[0].Replicas)
	}
	return replicas
}

func TestResourcesThatAnotherBindingReservedMeanwhileAreNotUsed(t *testing.T) {
	l := newTestScheduler(t, withoutVersion(newBinding(aggregated)), memberWithPods("member1", "6"))
	l.assumptions = newAssumptions(true)
	if err := l.karmada.Create(t.Context(), withoutVersion(newBinding(aggregated, named("second")))); err != nil {
		t.Fatal(err)
	}
	estimates := 0
	l.estimators = []estimators.Row{{Name: "resource summary", Estimator: interruptedEstimator{then: func() {
		if estimates++; estimates == 1 {
			if _, err := l.Reconcile(t.Context(), requestFor("second")); err != nil {
				t.Error(err)
			}
		}
	}}}}
	if _, _, stored := l.pass(t); len(stored.Spec.Clusters) > 0 {
		t.Errorf("both bindings got the same resources: %+v", stored.Spec.Clusters)
	}
	if diff := cmp.Diff([]int32{4}, l.reservedReplicas("member1")); diff != "" {
		t.Errorf("assumed replicas (-want +got):\n%s", diff)
	}
}

// TestSlowEstimatorDelaysNoOtherBindingOfGroup checks that bindings of a workload anti-affinity group
// are scheduled concurrently, and still use different clusters.
func TestSlowEstimatorDelaysNoOtherBindingOfGroup(t *testing.T) {
	inGroup := func(bound *workv1alpha2.ResourceBinding) {
		bound.Spec.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AntiAffinityGroup: "app=web"}
	}
	l := newTestScheduler(t, withoutVersion(newBinding(aggregated, inGroup)), memberWithPods("member1", "6"), memberWithPods("member2", "6"))
	l.options.Features.WorkloadAffinity = true
	if err := l.karmada.Create(t.Context(), withoutVersion(newBinding(aggregated, inGroup, named("second")))); err != nil {
		t.Fatal(err)
	}
	estimates := 0
	l.estimators = []estimators.Row{{Name: "resource summary", Estimator: interruptedEstimator{then: func() {
		if estimates++; estimates > 1 {
			return
		}
		scheduled := make(chan error, 1)
		go func() {
			_, err := l.Reconcile(t.Context(), requestFor("second"))
			scheduled <- err
		}()
		select {
		case err := <-scheduled:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the second binding waits for the estimator of the first one")
		}
	}}}}
	_, _, first := l.pass(t)
	second := &workv1alpha2.ResourceBinding{}
	if err := l.karmada.Get(t.Context(), requestFor("second").NamespacedName, second); err != nil {
		t.Fatal(err)
	}
	used := map[string]int{}
	for _, target := range append(first.Spec.Clusters, second.Spec.Clusters...) {
		used[target.Name]++
	}
	if diff := cmp.Diff(map[string]int{"member1": 1, "member2": 1}, used); diff != "" {
		t.Errorf("bindings by cluster (-want +got):\n%s", diff)
	}
	l.reservedTargets.Range(func(left, _ any) bool {
		t.Errorf("the targets of %v are still reserved", left)
		return true
	})
}

func TestReservationEndsIfTheWriteFails(t *testing.T) {
	l := newTestScheduler(t, withoutVersion(newBinding(aggregated)), memberWithPods("member1", "6"))
	l.estimators, l.assumptions = []estimators.Row{{Name: "resource summary", Estimator: estimators.Summary{}}}, newAssumptions(true)
	l.rejectOnce["clusters"] = errors.New("the quota is exceeded")
	l.pass(t)
	if reserved := l.reservedReplicas("member1"); len(reserved) > 0 {
		t.Errorf("assumed replicas %v after a rejected write", reserved)
	}
	l.pass(t)
	if diff := cmp.Diff([]int32{4}, l.reservedReplicas("member1")); diff != "" {
		t.Errorf("assumed replicas (-want +got):\n%s", diff)
	}
}

func TestConcurrentWorkersDoNotOvercommit(t *testing.T) {
	const workers, count, room = 8, 200, 3 * 100
	store := newMemoryStore()
	l := newTestScheduler(t, withoutVersion(newBinding()), memberWithPods("member1", "100"), memberWithPods("member2", "100"), memberWithPods("member3", "100"))
	l.estimators, l.assumptions = []estimators.Row{{Name: "resource summary", Estimator: estimators.Summary{}}}, newAssumptions(true)
	l.karmada = store
	pending := make(chan request, count)
	for i := range count {
		bound := newBinding(aggregated, named(fmt.Sprintf("web-%03d", i)))
		if err := store.indexer.Add(bound); err != nil {
			t.Fatal(err)
		}
		pending <- requestOf(bound)
	}
	close(pending)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for r := range pending {
				for retry := conflictRetryDelay; retry == conflictRetryDelay; {
					result, err := l.Reconcile(t.Context(), r)
					if err != nil {
						t.Error(err)
					}
					retry = result.RequeueAfter
				}
			}
		})
	}
	group.Wait()
	used := map[string]int32{}
	for _, object := range store.indexer.List() {
		for _, target := range object.(*workv1alpha2.ResourceBinding).Spec.Clusters {
			used[target.Name] += target.Replicas
			used["all"] += target.Replicas
		}
	}
	if diff := cmp.Diff(map[string]int32{"member1": 100, "member2": 100, "member3": 100, "all": room}, used); diff != "" {
		t.Errorf("used Pods (-want +got):\n%s", diff)
	}
}
