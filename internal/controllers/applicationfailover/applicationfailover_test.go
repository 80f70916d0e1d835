package applicationfailover

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/api"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const (
	healthy   = workv1alpha2.ResourceHealthy
	unhealthy = workv1alpha2.ResourceUnhealthy
	unknown   = workv1alpha2.ResourceUnknown
)

// healthRules contains a health rule for every kind.
type healthRules struct{}

func (healthRules) Rules(schema.GroupVersionKind) interpreter.Rules {
	return interpreter.Rules{IsHealthy: func(context.Context, *unstructured.Unstructured) (bool, error) { return true, nil }}
}

// fixture is a reconciler over a fake store with its own clock.
type fixture struct {
	*reconciler
	t        *testing.T
	store    client.WithWatch
	recorder *record.FakeRecorder
	clock    time.Time
	writes   int
}

func newFixture(t *testing.T, change func(*workv1alpha2.ResourceBinding)) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", UID: "1"}}
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "2"}
	bound.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 1}}
	bound.Spec.PropagateDeps = true
	bound.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{
		DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: new(int32(60))},
	}}
	if change != nil {
		change(bound)
	}
	f := &fixture{t: t, recorder: record.NewFakeRecorder(1000), clock: noon}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(bound).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, o ...client.PatchOption) error {
			f.writes++
			return c.Patch(ctx, object, patch, o...)
		},
	})
	if err := loop.AddIndexes(looptest.Indexer{ClientBuilder: builder}, loop.BindingsByTemplate); err != nil {
		t.Fatal(err)
	}
	f.store = builder.Build()
	f.restart()
	return f
}

// restart replaces the reconciler by a new one without any state in memory.
func (f *fixture) restart() {
	f.reconciler = &reconciler{
		options: DefaultOptions(), namespaced: true, karmada: f.store, rules: healthRules{}, events: loop.NewEvents(f.recorder),
		observed: newUnhealthyTracker(), now: func() time.Time { return f.clock },
	}
}

func (f *fixture) readBinding() *workv1alpha2.ResourceBinding {
	f.t.Helper()
	stored := &workv1alpha2.ResourceBinding{}
	if err := f.store.Get(f.t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-deployment"}, stored); err != nil {
		f.t.Fatal(err)
	}
	return stored
}

// reportHealth advances the clock, stores the health of m1 and m2 and runs a pass.
func (f *fixture) reportHealth(after time.Duration, m1, m2 workv1alpha2.ResourceHealth) (requeueAfter time.Duration) {
	f.t.Helper()
	f.clock = f.clock.Add(after)
	bound := f.readBinding()
	bound.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Health: m1}, {ClusterName: "m2", Health: m2}}
	if err := f.store.Update(f.t.Context(), bound); err != nil {
		f.t.Fatal(err)
	}
	result, err := f.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bound)})
	if err != nil {
		f.t.Fatal(err)
	}
	return result.RequeueAfter
}

// describeState describes the clusters, the tasks and the annotations.
func (f *fixture) describeState() string {
	bound, text := f.readBinding(), "in"
	for _, target := range bound.Spec.Clusters {
		text += " " + target.Name
	}
	for _, task := range bound.Spec.GracefulEvictionTasks {
		text += fmt.Sprintf(", evicted from %s %s", task.FromCluster, task.PurgeMode)
	}
	if memory := bound.Annotations[workv1alpha2.UnhealthySinceAnnotation]; memory != "" {
		text += ", unhealthy since " + memory
	}
	if failed := failover.ReadFailures(bound, f.clock).AvoidedClusters(); failed.Len() > 0 {
		text += ", avoids " + strings.Join(sets.List(failed), " ")
	}
	return text
}

func (f *fixture) expect(want string, writes int) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.describeState()); diff != "" || f.writes != writes {
		f.t.Errorf("%d writes, want %d; state (-want +got):\n%s", f.writes, writes, diff)
	}
}

func TestUnhealthyApplicationIsEvicted(t *testing.T) {
	f := newFixture(t, nil)
	if requeueAfter := f.reportHealth(0, unhealthy, healthy); requeueAfter != minUnhealthyTime {
		t.Errorf("requeue after %s", requeueAfter)
	}
	f.expect("in m1 m2", 0)
	if requeueAfter := f.reportHealth(10*time.Second, unhealthy, healthy); requeueAfter != 50*time.Second {
		t.Errorf("requeue after %s", requeueAfter)
	}
	f.expect(`in m1 m2, unhealthy since {"m1":"2026-05-01T12:00:00Z"}`, 1)
	f.reportHealth(49*time.Second, unhealthy, healthy)
	f.expect(`in m1 m2, unhealthy since {"m1":"2026-05-01T12:00:00Z"}`, 1)
	if requeueAfter := f.reportHealth(time.Second, unhealthy, healthy); requeueAfter != 30*time.Minute {
		t.Errorf("requeue after %s", requeueAfter)
	}
	f.expect("in m2, evicted from m1 Gracefully, avoids m1", 2)
	f.reportHealth(29*time.Minute, unhealthy, healthy)
	f.expect("in m2, evicted from m1 Gracefully, avoids m1", 2)
	if requeueAfter := f.reportHealth(time.Minute, unhealthy, healthy); requeueAfter != 0 {
		t.Errorf("requeue after %s", requeueAfter)
	}
	f.expect("in m2, evicted from m1 Gracefully", 3)
	if _, exists := f.readBinding().Annotations[workv1alpha2.FailedInAnnotation]; exists {
		t.Error("the annotation of an expired failure is not removed")
	}
}

func TestApplicationThatRecoversInTimeStays(t *testing.T) {
	for _, recovered := range []workv1alpha2.ResourceHealth{healthy, unknown} {
		f := newFixture(t, nil)
		f.reportHealth(0, unhealthy, healthy)
		f.reportHealth(5*time.Second, recovered, healthy)
		f.expect("in m1 m2", 0) // a short failure causes no write
		f.reportHealth(time.Second, unhealthy, healthy)
		f.reportHealth(59*time.Second, unhealthy, healthy)
		f.expect(`in m1 m2, unhealthy since {"m1":"2026-05-01T12:00:06Z"}`, 1)
		f.reportHealth(0, recovered, healthy)
		f.expect("in m1 m2", 2)
		f.reportHealth(time.Hour, unhealthy, healthy)
		f.expect("in m1 m2", 2)
	}
}

func TestUnhealthyTimeSurvivesRestarts(t *testing.T) {
	f := newFixture(t, nil)
	f.reportHealth(0, unhealthy, healthy)
	f.reportHealth(20*time.Second, unhealthy, healthy)
	f.restart()
	f.reportHealth(20*time.Second, unhealthy, healthy)
	f.restart()
	f.expect(`in m1 m2, unhealthy since {"m1":"2026-05-01T12:00:00Z"}`, 1)
	if requeueAfter := f.reportHealth(20*time.Second, unhealthy, healthy); requeueAfter != 30*time.Second {
		t.Errorf("requeue after %s", requeueAfter)
	}
	f.expect(`in m1 m2, unhealthy since {"m1":"2026-05-01T12:00:00Z"}`, 1)
	f.reportHealth(30*time.Second, unhealthy, healthy)
	f.expect("in m2, evicted from m1 Gracefully, avoids m1", 2)
}

// The application may have recovered while the process did not run, and the new status is reported
// only after a delay.
func TestStatusFromBeforeAStartDoesNotEvict(t *testing.T) {
	f := newFixture(t, nil)
	f.reportHealth(0, unhealthy, healthy)
	f.reportHealth(20*time.Second, unhealthy, healthy)
	f.restart()
	f.reportHealth(time.Hour, unhealthy, healthy)
	// A repeated status must not restart the unhealthy time.
	f.reportHealth(time.Second, unhealthy, healthy)
	f.reportHealth(5*time.Second, healthy, healthy)
	f.expect("in m1 m2", 2)
}

func TestRecreatedBindingStartsWithoutUnhealthyTime(t *testing.T) {
	for name, processDeletion := range map[string]bool{"created before the deletion is processed": false, "created after the deletion is processed": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.reportHealth(0, unhealthy, healthy)
			deleted := f.readBinding()
			if err := f.store.Delete(t.Context(), deleted); err != nil {
				t.Fatal(err)
			}
			if processDeletion {
				if _, err := f.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(deleted)}); err != nil {
					t.Fatal(err)
				}
				if len(f.observed.records) > 0 {
					t.Errorf("health records are left: %v", f.observed.records)
				}
			}
			next := deleted.DeepCopy()
			next.UID, next.ResourceVersion = "3", ""
			if err := f.store.Create(t.Context(), next); err != nil {
				t.Fatal(err)
			}
			if requeueAfter := f.reportHealth(time.Hour, unhealthy, healthy); requeueAfter != minUnhealthyTime {
				t.Errorf("requeue after %s", requeueAfter)
			}
			f.expect("in m1 m2", 0)
		})
	}
}

// Unhealthy times from before a policy disabled failover must not count after the policy enables
// failover again.
func TestReenabledFailoverStartsWithoutUnhealthyTime(t *testing.T) {
	f := newFixture(t, nil)
	f.reportHealth(0, unhealthy, healthy)
	before := f.readBinding()
	without := before.DeepCopy()
	without.Spec.Failover = nil
	if err := f.store.Update(t.Context(), without); err != nil {
		t.Fatal(err)
	}
	if loop.OnlyMatchingBindings(hasFailover).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: without}) {
		f.reportHealth(time.Second, unhealthy, healthy)
	}
	enabled := f.readBinding()
	enabled.Spec.Failover = before.Spec.Failover
	if err := f.store.Update(t.Context(), enabled); err != nil {
		t.Fatal(err)
	}
	if next := f.reportHealth(time.Hour, unhealthy, healthy); next != minUnhealthyTime {
		t.Errorf("requeue after %s", next)
	}
	f.expect("in m1 m2", 0)
}

func TestAllEvictionsOfAPassAreOneWrite(t *testing.T) {
	f := newFixture(t, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Failover.Application.PurgeMode = policyv1alpha1.PurgeModeDirectly
	})
	f.reportHealth(0, unhealthy, unhealthy)
	f.reportHealth(time.Minute, unhealthy, unhealthy)
	f.expect("in, evicted from m1 Directly, evicted from m2 Directly, avoids m1 m2", 1)
	const eventFormat = "Normal EvictionStarted Evicting from cluster %s (ApplicationFailure, Directly): unhealthy for longer than 1m0s"
	// Each event is recorded on the binding first, and then on the template.
	for _, cluster := range []string{"m1", "m2", "m1", "m2"} {
		if diff := cmp.Diff(fmt.Sprintf(eventFormat, cluster), <-f.recorder.Events); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	}
}

func TestAnnotationsAreRemovedWithoutFailover(t *testing.T) {
	withAnnotation := func(change func(*workv1alpha2.ResourceBinding)) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) {
			b.Annotations = map[string]string{workv1alpha2.UnhealthySinceAnnotation: `{"m1":"2026-05-01T11:00:00Z"}`}
			change(b)
		}
	}
	for name, change := range map[string]func(*workv1alpha2.ResourceBinding){
		"a policy without failover":                     func(b *workv1alpha2.ResourceBinding) { b.Spec.Failover = nil },
		"a policy that does not propagate dependencies": func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, withAnnotation(change))
			f.reportHealth(0, unhealthy, healthy)
			f.expect("in m1 m2", 1)
		})
	}
}

func TestDisabledGracefulEvictionIsReportedOnce(t *testing.T) {
	f := newFixture(t, nil)
	f.options.AllowGraceful = false
	f.reportHealth(0, unhealthy, healthy)
	for range 3 {
		f.reportHealth(time.Minute, unhealthy, healthy)
	}
	f.expect(`in m1 m2, unhealthy since {"m1":"2026-05-01T12:00:00Z"}`, 1)
	if len(f.recorder.Events) != 2 {
		t.Errorf("%d events", len(f.recorder.Events))
	}
}
