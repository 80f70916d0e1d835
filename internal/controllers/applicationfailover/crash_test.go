package applicationfailover

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/loop/looptest"
)

func TestFailoverSurvivesCrashesAroundWrites(t *testing.T) {
	f := newFixture(t, func(b *workv1alpha2.ResourceBinding) {
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Health: unhealthy}, {ClusterName: "m2", Health: healthy}}
	})
	first := f.readBinding()
	looptest.CrashCase{
		NewStore: func() client.WithWatch {
			f = newFixture(t, func(b *workv1alpha2.ResourceBinding) {
				b.Spec, b.Status = first.DeepCopy().Spec, first.DeepCopy().Status
			})
			return f.store
		},
		NewLoop: func(karmada, others client.WithWatch) func(context.Context) error {
			f.store = others
			f.restart()
			f.karmada = karmada
			return func(ctx context.Context) error {
				result, err := f.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(first)})
				f.clock = f.clock.Add(max(result.RequeueAfter, time.Second))
				return err
			}
		},
		FinalState: func(context.Context, client.Reader) (string, error) { return f.describeState(), nil },
	}.Run(t)
	if got := f.describeState(); got != "in m2, evicted from m1 Gracefully" {
		t.Error(got)
	}
}
