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
	"karmada.io/karmada/internal/access/bindings"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/interpreter"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const (
	healthy   = workv1alpha2.ResourceHealthy
	unhealthy = workv1alpha2.ResourceUnhealthy
	unknown   = workv1alpha2.ResourceUnknown
)

// judging knows the health of every kind.
type judging struct{}

func (judging) Rules(schema.GroupVersionKind) interpreter.Rules {
	return interpreter.Rules{Healthy: func(context.Context, *unstructured.Unstructured) (bool, error) { return true, nil }}
}

// world is a reconciler over a store, with a clock of its own.
type world struct {
	*reconciler
	t      *testing.T
	store  client.WithWatch
	told   *record.FakeRecorder
	clock  time.Time
	writes int
}

func newWorld(t *testing.T, change func(*workv1alpha2.ResourceBinding)) *world {
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
	w := &world{t: t, told: record.NewFakeRecorder(1000), clock: noon}
	w.store = fake.NewClientBuilder().WithScheme(scheme).WithObjects(bound).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, o ...client.PatchOption) error {
			w.writes++
			return c.Patch(ctx, object, patch, o...)
		},
	}).Build()
	w.restart()
	return w
}

// restart forgets everything that is not stored.
func (w *world) restart() {
	w.reconciler = &reconciler{
		options: DefaultOptions(), namespaced: true, karmada: w.store, rules: judging{}, events: observe.NewEvents(w.told),
		recent: newRecent(), now: func() time.Time { return w.clock },
	}
}

func (w *world) bound() *workv1alpha2.ResourceBinding {
	w.t.Helper()
	stored := &workv1alpha2.ResourceBinding{}
	if err := w.store.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-deployment"}, stored); err != nil {
		w.t.Fatal(err)
	}
	return stored
}

// reports has m1 and m2 report health, and looks at it after a while.
func (w *world) reports(after time.Duration, m1, m2 workv1alpha2.ResourceHealth) (again time.Duration) {
	w.t.Helper()
	w.clock = w.clock.Add(after)
	bound := w.bound()
	bound.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Health: m1}, {ClusterName: "m2", Health: m2}}
	if err := w.store.Update(w.t.Context(), bound); err != nil {
		w.t.Fatal(err)
	}
	result, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bound)})
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

// state is the clusters, those that are left, and what is remembered.
func (w *world) state() string {
	bound, text := w.bound(), "in"
	for _, target := range bound.Spec.Clusters {
		text += " " + target.Name
	}
	for _, task := range bound.Spec.GracefulEvictionTasks {
		text += fmt.Sprintf(", leaves %s %s", task.FromCluster, task.PurgeMode)
	}
	if memory := bound.Annotations[workv1alpha2.UnhealthySinceAnnotation]; memory != "" {
		text += ", remembers " + memory
	}
	if failed := failover.FailuresOf(bound, w.clock).Avoided(); failed.Len() > 0 {
		text += ", avoids " + strings.Join(sets.List(failed), " ")
	}
	return text
}

func (w *world) expect(want string, writes int) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.state()); diff != "" || w.writes != writes {
		w.t.Errorf("%d writes, want %d; state (-want +got):\n%s", w.writes, writes, diff)
	}
}

func TestAnApplicationLeavesWhereItStaysUnhealthy(t *testing.T) {
	w := newWorld(t, nil)
	if again := w.reports(0, unhealthy, healthy); again != lasting {
		t.Errorf("looks again after %s", again)
	}
	w.expect("in m1 m2", 0)
	if again := w.reports(10*time.Second, unhealthy, healthy); again != 50*time.Second {
		t.Errorf("looks again after %s", again)
	}
	w.expect(`in m1 m2, remembers {"m1":"2026-05-01T12:00:00Z"}`, 1)
	w.reports(49*time.Second, unhealthy, healthy)
	w.expect(`in m1 m2, remembers {"m1":"2026-05-01T12:00:00Z"}`, 1)
	if again := w.reports(time.Second, unhealthy, healthy); again != 30*time.Minute {
		t.Errorf("looks again after %s", again)
	}
	w.expect("in m2, leaves m1 Gracefully, avoids m1", 2)
	w.reports(29*time.Minute, unhealthy, healthy)
	w.expect("in m2, leaves m1 Gracefully, avoids m1", 2)
	if again := w.reports(time.Minute, unhealthy, healthy); again != 0 {
		t.Errorf("looks again after %s", again)
	}
	w.expect("in m2, leaves m1 Gracefully", 3)
	if _, marked := w.bound().Annotations[workv1alpha2.FailedInAnnotation]; marked {
		t.Error("what does not count any more is still there")
	}
}

func TestAnApplicationThatRecoversInTimeStays(t *testing.T) {
	for _, recovered := range []workv1alpha2.ResourceHealth{healthy, unknown} {
		w := newWorld(t, nil)
		w.reports(0, unhealthy, healthy)
		w.reports(5*time.Second, recovered, healthy)
		w.expect("in m1 m2", 0) // a moment costs no write
		w.reports(time.Second, unhealthy, healthy)
		w.reports(59*time.Second, unhealthy, healthy)
		w.expect(`in m1 m2, remembers {"m1":"2026-05-01T12:00:06Z"}`, 1)
		w.reports(0, recovered, healthy)
		w.expect("in m1 m2", 2)
		w.reports(time.Hour, unhealthy, healthy)
		w.expect("in m1 m2", 2)
	}
}

func TestSinceWhenAnApplicationIsUnhealthyOutlivesTheProcess(t *testing.T) {
	w := newWorld(t, nil)
	w.reports(0, unhealthy, healthy)
	w.reports(20*time.Second, unhealthy, healthy)
	w.restart()
	w.reports(20*time.Second, unhealthy, healthy)
	w.restart()
	w.expect(`in m1 m2, remembers {"m1":"2026-05-01T12:00:00Z"}`, 1)
	if again := w.reports(20*time.Second, unhealthy, healthy); again != 30*time.Second {
		t.Errorf("looks again after %s", again)
	}
	w.expect(`in m1 m2, remembers {"m1":"2026-05-01T12:00:00Z"}`, 1)
	w.reports(30*time.Second, unhealthy, healthy)
	w.expect("in m2, leaves m1 Gracefully, avoids m1", 2)
}

// While nobody looked an application may have recovered, which takes a moment to be told.
func TestWhatWasReportedBeforeAStartEvictsNothing(t *testing.T) {
	w := newWorld(t, nil)
	w.reports(0, unhealthy, healthy)
	w.reports(20*time.Second, unhealthy, healthy)
	w.restart()
	w.reports(time.Hour, unhealthy, healthy)
	// That it is told again does not make it older.
	w.reports(time.Second, unhealthy, healthy)
	w.reports(5*time.Second, healthy, healthy)
	w.expect("in m1 m2", 2)
}

func TestABindingMadeAnewIsNotAsUnhealthyAsItsPredecessor(t *testing.T) {
	for name, noticed := range map[string]bool{"at once": false, "after the end of the first was noticed": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.reports(0, unhealthy, healthy)
			gone := w.bound()
			if err := w.store.Delete(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
			if noticed {
				if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(gone)}); err != nil {
					t.Fatal(err)
				}
				if len(w.recent.known) > 0 {
					t.Errorf("remembered are %v", w.recent.known)
				}
			}
			next := gone.DeepCopy()
			next.UID, next.ResourceVersion = "3", ""
			if err := w.store.Create(t.Context(), next); err != nil {
				t.Fatal(err)
			}
			if again := w.reports(time.Hour, unhealthy, healthy); again != lasting {
				t.Errorf("looks again after %s", again)
			}
			w.expect("in m1 m2", 0)
		})
	}
}

// What was seen before a policy gave up failover says nothing when it has it again.
func TestAPolicyThatHasFailoverAgainBeginsAnew(t *testing.T) {
	w := newWorld(t, nil)
	w.reports(0, unhealthy, healthy)
	before := w.bound()
	without := before.DeepCopy()
	without.Spec.Failover = nil
	if err := w.store.Update(t.Context(), without); err != nil {
		t.Fatal(err)
	}
	if bindings.While(takingPart).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: without}) {
		w.reports(time.Second, unhealthy, healthy)
	}
	again := w.bound()
	again.Spec.Failover = before.Spec.Failover
	if err := w.store.Update(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if next := w.reports(time.Hour, unhealthy, healthy); next != lasting {
		t.Errorf("looks again after %s", next)
	}
	w.expect("in m1 m2", 0)
}

func TestAllClustersThatAreLeftAreOneWrite(t *testing.T) {
	w := newWorld(t, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Failover.Application.PurgeMode = policyv1alpha1.PurgeModeDirectly
	})
	w.reports(0, unhealthy, unhealthy)
	w.reports(time.Minute, unhealthy, unhealthy)
	w.expect("in, leaves m1 Directly, leaves m2 Directly, avoids m1 m2", 1)
	const begins = "Normal EvictionStarted Evicting from cluster %s (ApplicationFailure, Directly): unhealthy for longer than 1m0s"
	// On the binding, then on the template.
	for _, cluster := range []string{"m1", "m2", "m1", "m2"} {
		if diff := cmp.Diff(fmt.Sprintf(begins, cluster), <-w.told.Events); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	}
}

func TestWhoTakesNoPartIsForgotten(t *testing.T) {
	remembering := func(change func(*workv1alpha2.ResourceBinding)) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) {
			b.Annotations = map[string]string{workv1alpha2.UnhealthySinceAnnotation: `{"m1":"2026-05-01T11:00:00Z"}`}
			change(b)
		}
	}
	for name, change := range map[string]func(*workv1alpha2.ResourceBinding){
		"a policy without failover": func(b *workv1alpha2.ResourceBinding) { b.Spec.Failover = nil },
		"dependencies that stay":    func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, remembering(change))
			w.reports(0, unhealthy, healthy)
			w.expect("in m1 m2", 1)
		})
	}
}

func TestWhatTheOperatorHasSwitchedOffIsToldOnce(t *testing.T) {
	w := newWorld(t, nil)
	w.options.Graceful = false
	w.reports(0, unhealthy, healthy)
	for range 3 {
		w.reports(time.Minute, unhealthy, healthy)
	}
	w.expect(`in m1 m2, remembers {"m1":"2026-05-01T12:00:00Z"}`, 1)
	if len(w.told.Events) != 2 {
		t.Errorf("%d events", len(w.told.Events))
	}
}
