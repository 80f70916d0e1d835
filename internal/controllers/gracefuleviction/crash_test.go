package gracefuleviction

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/crashtest"
	"karmada.io/karmada/internal/access/observe"
)

// An eviction gets its time, is held because nothing is known of the replacement, and
// ends when that is known to be healthy: each of it is a write.
func TestAProcessThatDiesAroundAWriteEndsEvictionsAllTheSame(t *testing.T) {
	var w *world
	crashtest.Case{
		Store: func() client.WithWatch {
			w = newWorld(t, func(b *workv1alpha2.ResourceBinding) {
				b.Spec.GracefulEvictionTasks[0].CreationTimestamp = nil
				b.Spec.GracefulEvictionTasks[0].GracePeriodSeconds = new(int32(1))
			}, cluster("m1", tainted), cluster("m2"), in("m1", 2), in("m2", 2))
			return w.store
		},
		Start: func(karmada, _ client.WithWatch) func(context.Context) error {
			began := w.clock
			w.karmada, w.live, w.made = karmada, karmada, 2
			w.steady, w.events = newSteady(w.options.Steady, 0), observe.NewEvents(record.NewFakeRecorder(100))
			return func(ctx context.Context) error {
				if w.clock.Sub(began) > 2*time.Second {
					w.made = 3
				}
				_, err := w.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w.bound())})
				w.clock = w.clock.Add(2 * time.Second)
				return err
			}
		},
		End: func(context.Context, client.Reader) (string, error) { return w.state(), nil },
	}.Run(t)
	if got := w.state(); got != "in m2:2" {
		t.Error(got)
	}
}
