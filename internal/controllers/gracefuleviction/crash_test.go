package gracefuleviction

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

// First the task gets its start time. Then it is held, because the health of the replacement is
// unknown. It ends when the replacement is healthy. Each step is one write.
func TestEvictionSurvivesCrashesAroundWrites(t *testing.T) {
	var f *fixture
	outdated := newWork("m2", 2)
	outdated.Annotations = nil
	looptest.CrashCase{
		NewStore: func() client.WithWatch {
			f = newFixture(t, func(b *workv1alpha2.ResourceBinding) {
				b.Spec.GracefulEvictionTasks[0].CreationTimestamp = nil
				b.Spec.GracefulEvictionTasks[0].GracePeriodSeconds = new(int32(1))
			}, newCluster("m1", withTaint), newCluster("m2"), newWork("m1", 2), outdated.DeepCopy())
			return f.store
		},
		NewLoop: func(karmada, _ client.WithWatch) func(context.Context) error {
			start := f.clock
			f.karmada, f.live = karmada, karmada
			f.healthTracker, f.events = newHealthTracker(f.options.MinHealthyTime, 0), loop.NewEvents(record.NewFakeRecorder(100))
			return func(ctx context.Context) error {
				if f.clock.Sub(start) > 2*time.Second {
					f.renderAgain(newWork("m2", 2))
				}
				_, err := f.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(f.readBinding())})
				f.clock = f.clock.Add(2 * time.Second)
				return err
			}
		},
		FinalState: func(context.Context, client.Reader) (string, error) { return f.describeState(), nil },
	}.Run(t)
	if got := f.describeState(); got != "in m2:2, departed from m1" {
		t.Error(got)
	}
}

// renderAgain sets the metadata of a stored Work to the metadata of a rendered Work.
func (f *fixture) renderAgain(rendered *workv1alpha1.Work) {
	f.t.Helper()
	stored := &workv1alpha1.Work{}
	if err := f.store.Get(f.t.Context(), client.ObjectKeyFromObject(rendered), stored); err != nil {
		f.t.Fatal(err)
	}
	stored.Annotations = rendered.Annotations
	if err := f.store.Update(f.t.Context(), stored); err != nil {
		f.t.Fatal(err)
	}
}
