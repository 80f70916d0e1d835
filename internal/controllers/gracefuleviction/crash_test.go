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
	"karmada.io/karmada/internal/access/telemetry"
)

// The task gets its start time, is held because the replacement has no known health, and ends
// when the replacement is healthy. Each step is a write.
func TestEvictionSurvivesCrashesAroundWrites(t *testing.T) {
	var f *fixture
	crashtest.Case{
		NewStore: func() client.WithWatch {
			f = newFixture(t, func(b *workv1alpha2.ResourceBinding) {
				b.Spec.GracefulEvictionTasks[0].CreationTimestamp = nil
				b.Spec.GracefulEvictionTasks[0].GracePeriodSeconds = new(int32(1))
			}, newCluster("m1", withTaint), newCluster("m2"), newWork("m1", 2), newWork("m2", 2))
			return f.store
		},
		NewLoop: func(karmada, _ client.WithWatch) func(context.Context) error {
			start := f.clock
			f.karmada, f.live, f.rendered = karmada, karmada, 2
			f.healthTracker, f.events = newHealthTracker(f.options.MinHealthyTime, 0), telemetry.NewEvents(record.NewFakeRecorder(100))
			return func(ctx context.Context) error {
				if f.clock.Sub(start) > 2*time.Second {
					f.rendered = 3
				}
				_, err := f.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(f.readBinding())})
				f.clock = f.clock.Add(2 * time.Second)
				return err
			}
		},
		FinalState: func(context.Context, client.Reader) (string, error) { return f.describeState(), nil },
	}.Run(t)
	if got := f.describeState(); got != "in m2:2" {
		t.Error(got)
	}
}
