package gracefuleviction

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/api"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/bindings"
	"karmada.io/karmada/internal/access/observe"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// concluded is the generation whose Works are made.
type concluded int64

func (c *concluded) Concluded(types.NamespacedName, types.UID) int64 { return int64(*c) }

// world is a reconciler over a store, with a clock of its own.
type world struct {
	*reconciler
	t      *testing.T
	store  client.WithWatch
	told   *record.FakeRecorder
	made   concluded
	clock  time.Time
	writes int
}

// newWorld is one in which a workload left m1 a minute ago and is healthy in m2,
// unless a change makes it otherwise.
func newWorld(t *testing.T, change func(*workv1alpha2.ResourceBinding), objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-deployment", UID: "1", Generation: 3, Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id"},
	}}
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "2"}
	bound.Spec.Placement = &policyv1alpha1.Placement{}
	bound.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 2}}
	bound.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
		FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: "TaintUntolerated", Producer: "TaintManager",
		CreationTimestamp: &metav1.Time{Time: noon.Add(-time.Minute)},
	}}
	bound.Status.SchedulerObservedGeneration = 3
	bound.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m2", Applied: true, Health: workv1alpha2.ResourceHealthy}}
	if change != nil {
		change(bound)
	}
	w := &world{t: t, told: record.NewFakeRecorder(20), made: 3, clock: noon}
	count := func() { w.writes++ }
	w.store = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&workv1alpha2.ResourceBinding{}).
		WithObjects(append(objects, bound)...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, o ...client.PatchOption) error {
			count()
			return c.Patch(ctx, object, patch, o...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, object client.Object, o ...client.SubResourceUpdateOption) error {
			count()
			return c.SubResource(name).Update(ctx, object, o...)
		},
	}).Build()
	options := DefaultOptions()
	w.reconciler = &reconciler{
		options: options, namespaced: true, karmada: w.store, live: w.store, renderings: &w.made,
		events: observe.NewEvents(w.told), steady: newSteady(options.Steady, 0), now: func() time.Time { return w.clock },
	}
	return w
}

func cluster(name string, changes ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	made := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	made.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
	for _, change := range changes {
		change(made)
	}
	return made
}

func tainted(c *clusterv1alpha1.Cluster) {
	c.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}}
}

func silent(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionFalse }

func dead(c *clusterv1alpha1.Cluster) {
	c.Annotations = map[string]string{clusterv1alpha1.DeclaredDeadAnnotation: clusterv1alpha1.DeclaredDeadValue}
}

// in is the Work of the binding in a cluster, applied in the generation given.
func in(cluster string, applied int64) *workv1alpha1.Work {
	made := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-" + cluster, Name: "web", Generation: 2, Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id"},
	}}
	made.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: applied}}
	return made
}

// copied is the Work of a binding in another namespace that has the same id.
func copied(cluster string) *workv1alpha1.Work {
	made := in(cluster, 2)
	made.Name = "copied"
	made.Annotations = map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "evil", workv1alpha2.ResourceBindingNameAnnotation: "web-deployment"}
	return made
}

func (w *world) pass() time.Duration {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web-deployment"}})
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *world) bound() *workv1alpha2.ResourceBinding {
	w.t.Helper()
	bound := &workv1alpha2.ResourceBinding{}
	if err := w.store.Get(w.t.Context(), types.NamespacedName{Namespace: "shop", Name: "web-deployment"}, bound); err != nil {
		w.t.Fatal(err)
	}
	return bound
}

// state is where the workload is and what it leaves.
func (w *world) state() string {
	w.t.Helper()
	bound := w.bound()
	var text []string
	for _, target := range bound.Spec.Clusters {
		text = append(text, fmt.Sprintf("in %s:%d", target.Name, target.Replicas))
	}
	for _, task := range bound.Spec.GracefulEvictionTasks {
		text = append(text, "leaves "+task.FromCluster)
	}
	for _, condition := range bound.Status.Conditions {
		text = append(text, condition.Type+" "+condition.Reason)
	}
	return strings.Join(text, ", ")
}

func TestWhatProvesAReplacement(t *testing.T) {
	deleted := in("m2", 2)
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: noon}, []string{"karmada.io/execution-controller"}
	failed := in("m2", 2)
	failed.Status.Conditions[0].Status = metav1.ConditionFalse
	tests := map[string]struct {
		objects []client.Object
		change  func(*workv1alpha2.ResourceBinding)
		made    concluded
		ends    bool
	}{
		"a healthy one of the present generation":         {objects: []client.Object{cluster("m1", tainted), cluster("m2"), in("m2", 2)}, ends: true},
		"not one whose Works are not made yet":            {objects: []client.Object{cluster("m1", tainted), cluster("m2"), in("m2", 2)}, made: 2},
		"not one that the member does not have yet":       {objects: []client.Object{cluster("m1", tainted), cluster("m2"), in("m2", 1)}},
		"not one that the member refuses":                 {objects: []client.Object{cluster("m1", tainted), cluster("m2"), failed}},
		"not one that is being deleted":                   {objects: []client.Object{cluster("m1", tainted), cluster("m2"), deleted}},
		"not one without a Work":                          {objects: []client.Object{cluster("m1", tainted), cluster("m2")}},
		"not one whose only Work is of another binding":   {objects: []client.Object{cluster("m1", tainted), cluster("m2"), copied("m2")}},
		"not one in a cluster that cannot be asked":       {objects: []client.Object{cluster("m1", tainted), cluster("m2", silent), in("m2", 2)}},
		"not one in a cluster that nobody knows":          {objects: []client.Object{cluster("m1", tainted), in("m2", 2)}},
		"not one that is not healthy":                     {objects: []client.Object{cluster("m1", tainted), cluster("m2"), in("m2", 2)}, change: func(b *workv1alpha2.ResourceBinding) { b.Status.AggregatedStatus[0].Health = "Unknown" }},
		"none is needed where the cluster is gone itself": {objects: []client.Object{cluster("m2")}, ends: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.change, test.objects...)
			if test.made != 0 {
				w.made = test.made
			}
			again := w.pass()
			if w.writes == 0 {
				if test.ends && again != w.options.Steady {
					t.Errorf("looks again after %s", again)
				}
				// What proves something does so when it lasts.
				w.clock = w.clock.Add(w.options.Steady)
				w.pass()
			}
			want := "in m2:2, leaves m1"
			if test.ends {
				want = "in m2:2"
			}
			if diff := cmp.Diff(want, w.state()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if test.ends != (len(w.told.Events) == 2) {
				t.Errorf("%d events", len(w.told.Events))
			}
			if !test.ends && (w.writes != 0 || again <= 0) {
				t.Errorf("%d writes, looks again after %s", w.writes, again)
			}
		})
	}
}

func TestHealthThatDoesNotLastProvesNothing(t *testing.T) {
	w := newWorld(t, nil, cluster("m1", tainted), cluster("m2"), in("m2", 2))
	w.pass()
	work := in("m2", 1)
	restore := func(of *workv1alpha1.Work) {
		stored := &workv1alpha1.Work{}
		if err := w.store.Get(t.Context(), client.ObjectKeyFromObject(of), stored); err != nil {
			t.Fatal(err)
		}
		stored.Status = of.Status
		if err := w.store.Update(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
	}
	w.clock = w.clock.Add(time.Second)
	restore(work)
	w.pass()
	w.clock = w.clock.Add(time.Second)
	restore(in("m2", 2))
	if again := w.pass(); again != w.options.Steady || w.state() != "in m2:2, leaves m1" {
		t.Errorf("looks again after %s; %s", again, w.state())
	}
}

// An eviction that ended is no reason to believe at once what is said during the next.
func TestHealthInAnEarlierEvictionProvesNothing(t *testing.T) {
	w := newWorld(t, nil, cluster("m1", tainted), cluster("m2"), in("m2", 2))
	w.pass()
	w.clock = w.clock.Add(w.options.Steady)
	before := w.bound()
	w.pass()
	if w.state() != "in m2:2" {
		t.Fatal(w.state())
	}
	if bindings.While(underEviction).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: w.bound()}) {
		w.pass()
	}
	if len(w.steady.since) != 0 {
		t.Errorf("remembers %v", w.steady.since)
	}
	w.clock = w.clock.Add(time.Hour)
	leaving := w.bound()
	leaving.Spec.GracefulEvictionTasks = before.Spec.GracefulEvictionTasks
	leaving.Spec.GracefulEvictionTasks[0].CreationTimestamp = &metav1.Time{Time: w.clock}
	if err := w.store.Update(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	if again := w.pass(); again != w.options.Steady || w.state() != "in m2:2, leaves m1" {
		t.Errorf("looks again after %s; %s", again, w.state())
	}
}

// While nobody looked the replacement may have failed, which takes a moment to be told.
func TestHealthThatWasReportedBeforeAStartProvesNothing(t *testing.T) {
	w := newWorld(t, nil, cluster("m1", tainted), cluster("m2"), in("m2", 2))
	w.steady = newSteady(w.options.Steady, w.options.Settle)
	if again := w.pass(); again != w.options.Settle {
		t.Errorf("looks again after %s", again)
	}
	w.clock = w.clock.Add(w.options.Steady)
	if again := w.pass(); again != w.options.Settle-w.options.Steady || w.state() != "in m2:2, leaves m1" {
		t.Errorf("looks again after %s; %s", again, w.state())
	}
	w.clock = w.clock.Add(w.options.Settle)
	w.pass()
	if w.state() != "in m2:2" {
		t.Error(w.state())
	}
}

func TestWhatIsHeldIsToldOnceAndForgottenWhenItIsOver(t *testing.T) {
	late := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.GracefulEvictionTasks[0].CreationTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)}
		b.Status.AggregatedStatus[0].Health = workv1alpha2.ResourceUnhealthy
	}
	w := newWorld(t, late, cluster("m1", tainted), cluster("m2"), in("m1", 2), in("m2", 2))
	for range 3 {
		w.pass()
	}
	if got := w.state(); got != "in m2:2, leaves m1, EvictionHeld NotReplaced" || w.writes != 1 || len(w.told.Events) != 2 {
		t.Errorf("%s; %d writes, %d events", got, w.writes, len(w.told.Events))
	}
	bound := w.bound()
	bound.Spec.GracefulEvictionTasks[0].SuppressDeletion = new(false)
	if err := w.store.Update(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	w.pass()
	w.pass()
	if got := w.state(); got != "in m2:2" || w.writes != 3 || len(w.told.Events) != 4 {
		t.Errorf("%s; %d writes, %d events", got, w.writes, len(w.told.Events))
	}
}

func TestAClusterThatOnlyTheCacheLacksIsNotGone(t *testing.T) {
	w := newWorld(t, nil, cluster("m2", silent))
	w.live = newWorld(t, nil, cluster("m1")).store
	w.pass()
	if got := w.state(); got != "in m2:2, leaves m1" {
		t.Error(got)
	}
}

func TestWhichChangesOfAClusterAreLookedAt(t *testing.T) {
	tests := map[string]struct {
		newer *clusterv1alpha1.Cluster
		want  bool
	}{
		"a taint":                      {cluster("m1", tainted), true},
		"that it is not ready":         {cluster("m1", silent), true},
		"that it was given up":         {cluster("m1", dead), true},
		"not what else it tells of it": {cluster("m1", func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v1" }), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := differs(cluster("m1"), test.newer); got != test.want {
				t.Errorf("looked at: %t", got)
			}
		})
	}
}

func TestAPurgeWaitsForTheOldCopyUnlessItsClusterIsDead(t *testing.T) {
	directly := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.GracefulEvictionTasks[0].PurgeMode = policyv1alpha1.PurgeModeDirectly
		b.Spec.GracefulEvictionTasks[0].CreationTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)}
	}
	w := newWorld(t, directly, cluster("m1", silent), cluster("m2"), in("m1", 2), in("m2", 2))
	if again := w.pass(); again != purgePoll || w.state() != "in m2:2, leaves m1, EvictionHeld NotPurged" {
		t.Errorf("looks again after %s; %s", again, w.state())
	}
	w = newWorld(t, directly, cluster("m1", silent, dead), cluster("m2"), in("m1", 2), in("m2", 2))
	w.pass()
	w.clock = w.clock.Add(w.options.Steady)
	w.pass()
	if got := w.state(); got != "in m2:2" {
		t.Errorf("with the cluster given up: %s", got)
	}
}

func TestAWorkOfABindingWithTheSameIDDoesNotKeepACopy(t *testing.T) {
	directly := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.GracefulEvictionTasks[0].PurgeMode = policyv1alpha1.PurgeModeDirectly
		b.Spec.GracefulEvictionTasks[0].CreationTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)}
	}
	w := newWorld(t, directly, cluster("m1", silent), cluster("m2"), copied("m1"), in("m2", 2))
	w.pass()
	w.clock = w.clock.Add(w.options.Steady)
	w.pass()
	if got := w.state(); got != "in m2:2" {
		t.Error(got)
	}
}

func TestAClusterTakesBackWhatNoOtherTakes(t *testing.T) {
	alone := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters, b.Status.AggregatedStatus = nil, nil
		b.Spec.GracefulEvictionTasks[0].Replicas = new(int32(2))
	}
	for name, test := range map[string]struct {
		m1   *clusterv1alpha1.Cluster
		want string
	}{
		"when it is ready and not tainted": {cluster("m1"), "in m1:2"},
		"not when it is tainted":           {cluster("m1", tainted), "leaves m1"},
		"not when it cannot be asked":      {cluster("m1", silent), "leaves m1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, alone, test.m1, in("m1", 2))
			w.pass()
			if diff := cmp.Diff(test.want, w.state()); diff != "" || w.writes > 1 {
				t.Errorf("%d writes (-want +got):\n%s", w.writes, diff)
			}
		})
	}
}

func TestATaskGetsItsTimeOnce(t *testing.T) {
	fresh := func(b *workv1alpha2.ResourceBinding) { b.Spec.GracefulEvictionTasks[0].CreationTimestamp = nil }
	w := newWorld(t, fresh, cluster("m1", tainted), cluster("m2", silent))
	if again := w.pass(); again != w.options.Timeout || w.writes != 1 {
		t.Errorf("looks again after %s, %d writes", again, w.writes)
	}
	w.clock = w.clock.Add(time.Minute)
	if again := w.pass(); again != w.options.Timeout-time.Minute || w.writes != 1 {
		t.Errorf("looks again after %s, %d writes", again, w.writes)
	}
}
