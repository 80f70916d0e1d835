package descheduler

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/loop"
)

func newQueue() loop.Queue[reconcile.Request] {
	return workqueue.NewTypedRateLimitingQueue(loop.NewRateLimiter[reconcile.Request](backoff))
}

// takeAll returns the queued names, and marks them as done.
func takeAll(queue loop.Queue[reconcile.Request]) []string {
	var names []string
	for queue.Len() > 0 {
		r, _ := queue.Get()
		queue.Done(r)
		names = append(names, r.Name)
	}
	return names
}

func TestSearchQueuesOnlyBindingsWithMissingReplicas(t *testing.T) {
	f := newFixture(t,
		newBinding("missing"),
		newBinding("ready", func(b *workv1alpha2.ResourceBinding) {
			b.Status.AggregatedStatus[0] = newStatus("m1", `{"readyReplicas":5}`)
		}),
		newBinding("unscheduled", func(b *workv1alpha2.ResourceBinding) { b.Annotations = nil }),
		newBinding("written"),
	)
	written := &workv1alpha2.ResourceBinding{}
	if err := f.store.Get(t.Context(), requestFor("written").NamespacedName, written); err != nil {
		t.Fatal(err)
	}
	written.ResourceVersion += "0"
	f.ownWrites.Record(requestFor("written"), written)
	queue := newQueue()
	defer queue.ShutDown()
	for range 2 {
		if err := f.enqueueCandidates(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"missing-deployment"}, takeAll(queue)); diff != "" {
		t.Errorf("queued bindings (-want +got):\n%s", diff)
	}
	if len(f.estimator.asked) != 0 || f.writes != 0 {
		t.Errorf("asked %v, %d writes", f.estimator.asked, f.writes)
	}
}

func TestSearchIsRepeatedAfterTheInterval(t *testing.T) {
	f := newFixture(t, newBinding("web"))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		queue := newQueue()
		defer queue.ShutDown()
		defer cancel()
		if err := (&search{f.descheduler}).Start(ctx, queue); err != nil {
			t.Fatal(err)
		}
		queuedAfter := func(wait time.Duration, want int) {
			t.Helper()
			<-time.After(wait)
			synctest.Wait()
			if got := takeAll(queue); len(got) != want {
				t.Errorf("after %s: queued %v, want %d", wait, got, want)
			}
		}
		queuedAfter(time.Second, 1)
		queuedAfter(f.options.Interval-2*time.Second, 0)
		queuedAfter(2*time.Second, 1)
		cancel()
		queuedAfter(2*f.options.Interval, 0)
	})
}

func TestDeletedBindingIsNotTracked(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	queue := newQueue()
	defer queue.ShutDown()
	if err := (&search{f.descheduler}).Start(ctx, queue); err != nil {
		t.Fatal(err)
	}
	gone := newBinding("web")
	f.ownWrites.Record(requestFor("web"), gone)
	informer, err := f.informers.FakeInformerFor(ctx, gone)
	if err != nil {
		t.Fatal(err)
	}
	informer.Delete(gone)
	if f.ownWrites.Len() != 0 {
		t.Error("the write of a deleted binding is tracked")
	}
}
