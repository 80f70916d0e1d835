package applicationfailover

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/crashtest"
)

func TestAProcessThatDiesAroundAWriteEvictsAllTheSame(t *testing.T) {
	w := newWorld(t, func(b *workv1alpha2.ResourceBinding) {
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Health: unhealthy}, {ClusterName: "m2", Health: healthy}}
	})
	first := w.bound()
	crashtest.Case{
		Store: func() client.WithWatch {
			w = newWorld(t, func(b *workv1alpha2.ResourceBinding) {
				b.Spec, b.Status = first.DeepCopy().Spec, first.DeepCopy().Status
			})
			return w.store
		},
		Start: func(karmada, others client.WithWatch) func(context.Context) error {
			w.store = others
			w.restart()
			w.karmada = karmada
			return func(ctx context.Context) error {
				result, err := w.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(first)})
				w.clock = w.clock.Add(max(result.RequeueAfter, time.Second))
				return err
			}
		},
		End: func(context.Context, client.Reader) (string, error) { return w.state(), nil },
	}.Run(t)
	if got := w.state(); got != "in m2, leaves m1 Gracefully" {
		t.Error(got)
	}
}
