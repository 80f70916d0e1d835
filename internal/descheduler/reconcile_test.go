package descheduler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/capacity"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

func TestReplicasAreRemoved(t *testing.T) {
	notReady := func(b *workv1alpha2.ResourceBinding) { b.Status.AggregatedStatus = nil }
	failed := capacity.Estimate{Err: errors.New("connection refused")}
	tests := map[string]struct {
		change    func(*workv1alpha2.ResourceBinding)
		estimates map[string]capacity.Estimate
		asked     [][]string
		want      []workv1alpha2.TargetCluster
		message   string
	}{
		"unschedulable replicas": {
			asked: [][]string{{"m1"}}, estimates: map[string]capacity.Estimate{"m1": {Count: 2}, "m2": {Count: 2}}, want: targets(3, 2),
			message: "2 replica(s) in cluster(m1), 2 total",
		},
		"of two clusters": {
			change: notReady, asked: [][]string{{"m1", "m2"}}, estimates: map[string]capacity.Estimate{"m1": {Count: 2}, "m2": {Count: 1}}, want: targets(3, 1),
			message: "2 replica(s) in cluster(m1), 1 replica(s) in cluster(m2), 3 total",
		},
		"all replicas of a cluster": {
			change: notReady, asked: [][]string{{"m1", "m2"}}, estimates: map[string]capacity.Estimate{"m1": {Count: 5}}, want: targets(0, 2),
			message: "5 replica(s) in cluster(m1), 5 total",
		},
		"the estimator of another cluster fails": {
			change: notReady, asked: [][]string{{"m1", "m2"}}, estimates: map[string]capacity.Estimate{"m1": failed, "m2": {Count: 1}}, want: targets(5, 1),
			message: "1 replica(s) in cluster(m2), 1 total",
		},
		"no estimator":              {asked: [][]string{{"m1"}}, want: targets(5, 2)},
		"the estimator fails":       {asked: [][]string{{"m1"}}, estimates: map[string]capacity.Estimate{"m1": failed}, want: targets(5, 2)},
		"no unschedulable replicas": {asked: [][]string{{"m1"}}, estimates: map[string]capacity.Estimate{"m1": {Count: 0}}, want: targets(5, 2)},
		"all replicas are ready": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Status.AggregatedStatus[0] = newStatus("m1", `{"readyReplicas":5}`)
			},
			estimates: map[string]capacity.Estimate{"m1": {Count: 2}}, want: targets(5, 2),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.change == nil {
				test.change = func(*workv1alpha2.ResourceBinding) {}
			}
			f := newFixture(t, newBinding("web", test.change))
			f.estimator.estimates = test.estimates
			if result := f.pass(t); !result.IsZero() {
				t.Errorf("result %v", result)
			}
			if diff := cmp.Diff(test.asked, f.estimator.asked); diff != "" {
				t.Errorf("asked clusters (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, f.stored(t).Spec.Clusters); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			var events []string
			if test.message != "" {
				event := fmt.Sprintf("Normal DescheduleBindingSucceed Binding has been descheduled, %s descheduled replica(s)", test.message)
				events = []string{event, event}
			}
			if diff := cmp.Diff(events, f.recordedEvents()); diff != "" || f.writes != len(events)/2 {
				t.Errorf("%d writes, events (-want +got):\n%s", f.writes, diff)
			}
		})
	}
}

// The next pass waits until the scheduler has placed the removed replicas.
func TestRemovalIsNotRepeated(t *testing.T) {
	f := newFixture(t, newBinding("web"))
	f.pass(t)
	f.pass(t)
	if diff := cmp.Diff(targets(3, 2), f.stored(t).Spec.Clusters); diff != "" || f.writes != 1 || len(f.estimator.asked) != 1 {
		t.Errorf("%d writes, asked %v, targets (-want +got):\n%s", f.writes, f.estimator.asked, diff)
	}
}

func TestConflictIsRetriedWithoutEvent(t *testing.T) {
	f := newFixture(t, newBinding("web"))
	f.rejectWrite = apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("newer"))
	if result := f.pass(t); result != loop.StaleResult() {
		t.Errorf("result %v, want a retry with backoff", result)
	}
	if events := f.recordedEvents(); len(events) != 0 {
		t.Errorf("events %q", events)
	}
	f.pass(t)
	if diff := cmp.Diff(targets(3, 2), f.stored(t).Spec.Clusters); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}

func TestFailureIsRecordedOnce(t *testing.T) {
	f := newFixture(t, newBinding("web"))
	for range 2 {
		f.rejectWrite = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "denied"}}
		if _, err := f.Reconcile(t.Context(), requestFor("web")); err == nil {
			t.Error("the failure is not retried")
		}
	}
	const failure = "Warning DescheduleBindingFailed patching ResourceBinding shop/web-deployment: denied"
	if diff := cmp.Diff([]string{failure, failure}, f.recordedEvents()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	f.pass(t)
	if events := f.recordedEvents(); len(events) != 2 {
		t.Errorf("events %q, want one on the binding and one on the template", events)
	}
}

// The cache does not show the last write, so the pass must not count the same Pods twice.
func TestStaleCacheIsNotUsed(t *testing.T) {
	f := newFixture(t, newBinding("web"))
	written := f.stored(t)
	written.ResourceVersion += "0"
	f.ownWrites.Record(requestFor("web"), written)
	if result := f.pass(t); result != loop.StaleResult() || len(f.estimator.asked) != 0 || f.writes != 0 {
		t.Errorf("result %v, asked %v, %d writes", result, f.estimator.asked, f.writes)
	}
}

func TestChangesWhileEstimatorsAnswer(t *testing.T) {
	tests := map[string]struct {
		change  func(*workv1alpha2.ResourceBinding)
		want    []workv1alpha2.TargetCluster
		isStale bool
	}{
		"an eviction from the cluster is not undone": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Generation, b.Spec.Clusters = 5, []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 2}}
				b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}
			}, want: []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 2}}, isStale: true,
		},
		"a change of the replicas by a user is not undone": {
			change: func(b *workv1alpha2.ResourceBinding) { b.Generation, b.Spec.Clusters = 5, targets(4, 3) }, want: targets(4, 3), isStale: true,
		},
		"more replicas are ready": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Status.AggregatedStatus[0] = newStatus("m1", `{"readyReplicas":4}`)
			}, want: targets(4, 2),
		},
		"all replicas are ready": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Status.AggregatedStatus[0] = newStatus("m1", `{"readyReplicas":5}`)
			}, want: targets(5, 2),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newBinding("web"))
			f.estimator.whileResponding = func() {
				changed := f.stored(t)
				test.change(changed)
				if err := errors.Join(f.store.Status().Update(t.Context(), changed.DeepCopy()), updateSpec(t.Context(), f.store, changed)); err != nil {
					t.Fatal(err)
				}
			}
			if result := f.pass(t); (result == loop.StaleResult()) != test.isStale {
				t.Errorf("result %v", result)
			}
			if diff := cmp.Diff(test.want, f.stored(t).Spec.Clusters); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBindingIsDeletedWhileEstimatorsAnswer(t *testing.T) {
	f := newFixture(t, newBinding("web"))
	f.estimator.whileResponding = func() {
		if err := f.store.Delete(t.Context(), f.stored(t)); err != nil {
			t.Fatal(err)
		}
	}
	if result := f.pass(t); !result.IsZero() || f.writes != 0 || len(f.recordedEvents()) != 0 {
		t.Errorf("result %v, %d writes", result, f.writes)
	}
	if result := f.pass(t); !result.IsZero() || len(f.estimator.asked) != 1 {
		t.Errorf("result %v, asked %v", result, f.estimator.asked)
	}
}

// updateSpec stores everything except the status of a binding.
func updateSpec(ctx context.Context, store client.Client, changed *workv1alpha2.ResourceBinding) error {
	stored := &workv1alpha2.ResourceBinding{}
	if err := store.Get(ctx, client.ObjectKeyFromObject(changed), stored); err != nil {
		return err
	}
	changed.ResourceVersion = stored.ResourceVersion
	return store.Update(ctx, changed)
}

// The scheduler gives the removed replicas to m2. The estimator reports the same unschedulable Pods
// all the time.
func TestDeschedulingSurvivesCrashes(t *testing.T) {
	looptest.CrashCase{
		NewStore: func() client.WithWatch {
			return newFixture(t, newBinding("web")).store
		},
		NewLoop: func(karmada, others client.WithWatch) func(context.Context) error {
			f := newFixture(t)
			f.descheduler.karmada = karmada
			return func(ctx context.Context) error {
				if _, err := f.Reconcile(ctx, requestFor("web")); err != nil {
					return err
				}
				return placeMissingReplicas(ctx, others)
			}
		},
		FinalState: func(ctx context.Context, from client.Reader) (string, error) {
			bound := &workv1alpha2.ResourceBinding{}
			err := from.Get(ctx, requestFor("web").NamespacedName, bound)
			return fmt.Sprint(bound.Spec.Clusters), err
		},
	}.Run(t)
}

func placeMissingReplicas(ctx context.Context, store client.Client) error {
	bound := &workv1alpha2.ResourceBinding{}
	if err := store.Get(ctx, requestFor("web").NamespacedName, bound); err != nil {
		return err
	}
	missing := bound.Spec.Replicas - bound.Spec.Clusters[0].Replicas - bound.Spec.Clusters[1].Replicas
	if missing == 0 {
		return nil
	}
	bound.Spec.Clusters[1].Replicas += missing
	if err := store.Update(ctx, bound); err != nil {
		return err
	}
	bound.Status.AggregatedStatus[0] = newStatus("m1", `{"readyReplicas":3}`)
	return store.Status().Update(ctx, bound)
}

var _ reconcile.Reconciler = (*descheduler)(nil)
