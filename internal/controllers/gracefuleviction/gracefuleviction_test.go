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
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// fixture is a reconciler over a fake store with its own clock.
type fixture struct {
	*reconciler
	t        *testing.T
	store    client.WithWatch
	recorder *record.FakeRecorder
	clock    time.Time
	writes   int
}

// evictedBinding returns the binding of a workload with 2 replicas that was evicted from m1 to m2 a
// minute ago.
func evictedBinding() *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-deployment", UID: "1", Generation: 3, Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id"},
	}}
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "2", ResourceVersion: "7"}
	bound.Spec.Placement = &policyv1alpha1.Placement{}
	bound.Spec.Replicas = 2
	bound.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 2}}
	bound.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
		FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: "TaintUntolerated", Producer: "TaintManager",
		CreationTimestamp: &metav1.Time{Time: noon.Add(-time.Minute)},
	}}
	bound.Status.SchedulerObservedGeneration = 3
	bound.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m2", Applied: true, Health: workv1alpha2.ResourceHealthy}}
	return bound
}

// newFixture returns a fixture with a workload that was evicted from m1 a minute ago and is healthy
// in m2. The function change may modify the binding.
func newFixture(t *testing.T, change func(*workv1alpha2.ResourceBinding), objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	bound := evictedBinding()
	if change != nil {
		change(bound)
	}
	f := &fixture{t: t, recorder: record.NewFakeRecorder(20), clock: noon}
	count := func() { f.writes++ }
	f.store = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&workv1alpha2.ResourceBinding{}).
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
	f.reconciler = &reconciler{
		options: options, namespaced: true, karmada: f.store, live: f.store,
		events: loop.NewEvents(f.recorder), healthTracker: newHealthTracker(options.MinHealthyTime, 0), now: func() time.Time { return f.clock },
	}
	return f
}

func newCluster(name string, changes ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	created := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	created.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
	for _, change := range changes {
		change(created)
	}
	return created
}

func withTaint(c *clusterv1alpha1.Cluster) {
	c.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}}
}

func notReady(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionFalse }

func declaredDead(c *clusterv1alpha1.Cluster) {
	c.Annotations = map[string]string{clusterv1alpha1.DeclaredDeadAnnotation: clusterv1alpha1.DeclaredDeadValue}
}

// newWork returns the Work of the binding in a cluster. The Work is rendered from the current spec,
// and was applied in the given generation.
func newWork(cluster string, applied int64) *workv1alpha1.Work {
	created := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-" + cluster, Name: "web", Generation: 2, Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id"},
		Annotations: map[string]string{
			workv1alpha1.RenderedFromAnnotation: work.RenderedFrom(evictedBinding(), workv1alpha2.TargetCluster{Name: cluster, Replicas: 2}, "7"),
		},
	}}
	created.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: applied}}
	return created
}

// newForeignWork returns the Work of another binding. That binding has the same ID as the tested
// binding, but is in another namespace.
func newForeignWork(cluster string) *workv1alpha1.Work {
	created := newWork(cluster, 2)
	created.Name = "copied"
	created.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotation] = "evil"
	created.Annotations[workv1alpha2.ResourceBindingNameAnnotation] = "web-deployment"
	return created
}

func (f *fixture) reconcileOnce() time.Duration {
	f.t.Helper()
	result, err := f.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web-deployment"}})
	if err != nil {
		f.t.Fatal(err)
	}
	return result.RequeueAfter
}

func (f *fixture) readBinding() *workv1alpha2.ResourceBinding {
	f.t.Helper()
	bound := &workv1alpha2.ResourceBinding{}
	if err := f.store.Get(f.t.Context(), types.NamespacedName{Namespace: "shop", Name: "web-deployment"}, bound); err != nil {
		f.t.Fatal(err)
	}
	return bound
}

// describeState describes the clusters, tasks, departures and conditions of the binding.
func (f *fixture) describeState() string {
	f.t.Helper()
	bound := f.readBinding()
	var text []string
	for _, target := range bound.Spec.Clusters {
		text = append(text, fmt.Sprintf("in %s:%d", target.Name, target.Replicas))
	}
	for _, task := range bound.Spec.GracefulEvictionTasks {
		text = append(text, "evicted from "+task.FromCluster)
	}
	for _, cluster := range []string{"m1", "m2"} {
		if binding.HasDeparted(bound, cluster, time.Time{}) {
			text = append(text, "departed from "+cluster)
		}
	}
	for _, condition := range bound.Status.Conditions {
		text = append(text, condition.Type+" "+condition.Reason)
	}
	return strings.Join(text, ", ")
}

func TestEvictionEndsOnlyWithAHealthyReplacement(t *testing.T) {
	deleted := newWork("m2", 2)
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: noon}, []string{"karmada.io/execution-controller"}
	unmarked := newWork("m2", 2)
	unmarked.Annotations = nil
	failed := newWork("m2", 2)
	failed.Status.Conditions[0].Status = metav1.ConditionFalse
	tests := map[string]struct {
		objects []client.Object
		change  func(*workv1alpha2.ResourceBinding)
		ends    bool
	}{
		"a healthy replacement of the current generation": {objects: []client.Object{newCluster("m1", withTaint), newCluster("m2"), newWork("m2", 2)}, ends: true},
		"a Work of an earlier template": {
			objects: []client.Object{newCluster("m1", withTaint), newCluster("m2"), newWork("m2", 2)},
			change:  func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.ResourceVersion = "8" },
		},
		"a Work with earlier replicas": {
			objects: []client.Object{newCluster("m1", withTaint), newCluster("m2"), newWork("m2", 2)},
			change:  func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Replicas = 3 },
		},
		"a Work that does not show from what it is rendered": {
			objects: []client.Object{newCluster("m1", withTaint), newCluster("m2"), unmarked},
		},
		"a Work that the binding records as current": {
			objects: []client.Object{newCluster("m1", withTaint), newCluster("m2"), unmarked},
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Annotations = map[string]string{workv1alpha2.RenderedGenerationAnnotation: "1/3"}
			},
			ends: true,
		},
		"a Work that the binding recorded in an earlier generation": {
			objects: []client.Object{newCluster("m1", withTaint), newCluster("m2"), unmarked},
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Annotations = map[string]string{workv1alpha2.RenderedGenerationAnnotation: "1/2"}
			},
		},
		"a Work that could not be rendered again": {
			objects: []client.Object{newCluster("m1", withTaint), newCluster("m2"), newWork("m2", 2)},
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Annotations = map[string]string{workv1alpha2.RenderFailuresAnnotation: `{"m2":"forbidden"}`}
			},
		},
		"a Work that is not applied in its current generation": {objects: []client.Object{newCluster("m1", withTaint), newCluster("m2"), newWork("m2", 1)}},
		"a Work that failed":                             {objects: []client.Object{newCluster("m1", withTaint), newCluster("m2"), failed}},
		"a Work in deletion":                             {objects: []client.Object{newCluster("m1", withTaint), newCluster("m2"), deleted}},
		"no Work":                                        {objects: []client.Object{newCluster("m1", withTaint), newCluster("m2")}},
		"a Work of another binding":                      {objects: []client.Object{newCluster("m1", withTaint), newCluster("m2"), newForeignWork("m2")}},
		"a cluster that is not ready":                    {objects: []client.Object{newCluster("m1", withTaint), newCluster("m2", notReady), newWork("m2", 2)}},
		"an unknown cluster":                             {objects: []client.Object{newCluster("m1", withTaint), newWork("m2", 2)}},
		"a replacement of unknown health":                {objects: []client.Object{newCluster("m1", withTaint), newCluster("m2"), newWork("m2", 2)}, change: func(b *workv1alpha2.ResourceBinding) { b.Status.AggregatedStatus[0].Health = "Unknown" }},
		"an old cluster that is not registered any more": {objects: []client.Object{newCluster("m2")}, ends: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.change, test.objects...)
			requeueAfter := f.reconcileOnce()
			if f.writes == 0 {
				if test.ends && requeueAfter != f.options.MinHealthyTime {
					t.Errorf("requeue after %s", requeueAfter)
				}
				// Health counts only if it lasts for the minimum time.
				f.clock = f.clock.Add(f.options.MinHealthyTime)
				f.reconcileOnce()
			}
			replicas := f.readBinding().Spec.Clusters[0].Replicas
			want := fmt.Sprintf("in m2:%d, evicted from m1", replicas)
			if test.ends {
				want = fmt.Sprintf("in m2:%d, departed from m1", replicas)
			}
			if diff := cmp.Diff(want, f.describeState()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if test.ends != (len(f.recorder.Events) == 2) {
				t.Errorf("%d events", len(f.recorder.Events))
			}
			if !test.ends && (f.writes != 0 || requeueAfter <= 0) {
				t.Errorf("%d writes, requeue after %s", f.writes, requeueAfter)
			}
		})
	}
}

func TestInterruptedHealthDoesNotEndEvictions(t *testing.T) {
	f := newFixture(t, nil, newCluster("m1", withTaint), newCluster("m2"), newWork("m2", 2))
	f.reconcileOnce()
	work := newWork("m2", 1)
	restore := func(changed *workv1alpha1.Work) {
		stored := &workv1alpha1.Work{}
		if err := f.store.Get(t.Context(), client.ObjectKeyFromObject(changed), stored); err != nil {
			t.Fatal(err)
		}
		stored.Status = changed.Status
		if err := f.store.Update(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
	}
	f.clock = f.clock.Add(time.Second)
	restore(work)
	f.reconcileOnce()
	f.clock = f.clock.Add(time.Second)
	restore(newWork("m2", 2))
	if requeueAfter := f.reconcileOnce(); requeueAfter != f.options.MinHealthyTime || f.describeState() != "in m2:2, evicted from m1" {
		t.Errorf("requeue after %s; %s", requeueAfter, f.describeState())
	}
}

// The health records of an earlier eviction must not count for the next eviction.
func TestHealthOfAnEarlierEvictionDoesNotCount(t *testing.T) {
	f := newFixture(t, nil, newCluster("m1", withTaint), newCluster("m2"), newWork("m2", 2))
	f.reconcileOnce()
	f.clock = f.clock.Add(f.options.MinHealthyTime)
	before := f.readBinding()
	f.reconcileOnce()
	if f.describeState() != "in m2:2, departed from m1" {
		t.Fatal(f.describeState())
	}
	if loop.OnlyMatchingBindings(hasEviction).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: f.readBinding()}) {
		f.reconcileOnce()
	}
	if len(f.healthTracker.records) != 0 {
		t.Errorf("health records are left: %v", f.healthTracker.records)
	}
	f.clock = f.clock.Add(time.Hour)
	leaving := f.readBinding()
	leaving.Spec.GracefulEvictionTasks = before.Spec.GracefulEvictionTasks
	leaving.Spec.GracefulEvictionTasks[0].CreationTimestamp = &metav1.Time{Time: f.clock}
	if err := f.store.Update(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	if requeueAfter := f.reconcileOnce(); requeueAfter != f.options.MinHealthyTime || f.describeState() != "in m2:2, evicted from m1" {
		t.Errorf("requeue after %s; %s", requeueAfter, f.describeState())
	}
}

// The replacement may have failed while the process did not run, and the new status is reported
// only after a delay.
func TestHealthReportedBeforeAStartDoesNotCount(t *testing.T) {
	f := newFixture(t, nil, newCluster("m1", withTaint), newCluster("m2"), newWork("m2", 2))
	f.healthTracker = newHealthTracker(f.options.MinHealthyTime, f.options.StartupDelay)
	if requeueAfter := f.reconcileOnce(); requeueAfter != f.options.StartupDelay {
		t.Errorf("requeue after %s", requeueAfter)
	}
	f.clock = f.clock.Add(f.options.MinHealthyTime)
	if requeueAfter := f.reconcileOnce(); requeueAfter != f.options.StartupDelay-f.options.MinHealthyTime || f.describeState() != "in m2:2, evicted from m1" {
		t.Errorf("requeue after %s; %s", requeueAfter, f.describeState())
	}
	f.clock = f.clock.Add(f.options.StartupDelay)
	f.reconcileOnce()
	if f.describeState() != "in m2:2, departed from m1" {
		t.Error(f.describeState())
	}
}

func TestHeldEvictionIsReportedOnce(t *testing.T) {
	late := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.GracefulEvictionTasks[0].CreationTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)}
		b.Status.AggregatedStatus[0].Health = workv1alpha2.ResourceUnhealthy
	}
	f := newFixture(t, late, newCluster("m1", withTaint), newCluster("m2"), newWork("m1", 2), newWork("m2", 2))
	for range 3 {
		f.reconcileOnce()
	}
	if got := f.describeState(); got != "in m2:2, evicted from m1, EvictionHeld NotReplaced" || f.writes != 1 || len(f.recorder.Events) != 2 {
		t.Errorf("%s; %d writes, %d events", got, f.writes, len(f.recorder.Events))
	}
	bound := f.readBinding()
	bound.Spec.GracefulEvictionTasks[0].SuppressDeletion = new(false)
	if err := f.store.Update(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	f.reconcileOnce()
	f.reconcileOnce()
	if got := f.describeState(); got != "in m2:2, departed from m1" || f.writes != 3 || len(f.recorder.Events) != 4 {
		t.Errorf("%s; %d writes, %d events", got, f.writes, len(f.recorder.Events))
	}
}

func TestStaleCacheDoesNotProveAnUnregisteredCluster(t *testing.T) {
	f := newFixture(t, nil, newCluster("m2", notReady))
	f.live = newFixture(t, nil, newCluster("m1")).store
	f.reconcileOnce()
	if got := f.describeState(); got != "in m2:2, evicted from m1" {
		t.Error(got)
	}
}

func TestClusterChangesThatRequireAPass(t *testing.T) {
	tests := map[string]struct {
		newer *clusterv1alpha1.Cluster
		want  bool
	}{
		"a taint":                     {newCluster("m1", withTaint), true},
		"a lost readiness":            {newCluster("m1", notReady), true},
		"the dead annotation":         {newCluster("m1", declaredDead), true},
		"another field of the status": {newCluster("m1", func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v1" }), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := requiresPass(newCluster("m1"), test.newer); got != test.want {
				t.Errorf("requires a pass: %t", got)
			}
		})
	}
}

func TestDirectPurgeWaitsForTheOldCopyUnlessItsClusterIsDead(t *testing.T) {
	directly := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.GracefulEvictionTasks[0].PurgeMode = policyv1alpha1.PurgeModeDirectly
		b.Spec.GracefulEvictionTasks[0].CreationTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)}
	}
	f := newFixture(t, directly, newCluster("m1", notReady), newCluster("m2"), newWork("m1", 2), newWork("m2", 2))
	if requeueAfter := f.reconcileOnce(); requeueAfter != purgePollInterval || f.describeState() != "in m2:2, evicted from m1, EvictionHeld NotPurged" {
		t.Errorf("requeue after %s; %s", requeueAfter, f.describeState())
	}
	f = newFixture(t, directly, newCluster("m1", notReady, declaredDead), newCluster("m2"), newWork("m1", 2), newWork("m2", 2))
	f.reconcileOnce()
	f.clock = f.clock.Add(f.options.MinHealthyTime)
	f.reconcileOnce()
	if got := f.describeState(); got != "in m2:2, departed from m1" {
		t.Errorf("with the cluster declared dead: %s", got)
	}
}

func TestWorkOfABindingWithTheSameIDDoesNotBlockAPurge(t *testing.T) {
	directly := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.GracefulEvictionTasks[0].PurgeMode = policyv1alpha1.PurgeModeDirectly
		b.Spec.GracefulEvictionTasks[0].CreationTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)}
	}
	f := newFixture(t, directly, newCluster("m1", notReady), newCluster("m2"), newForeignWork("m1"), newWork("m2", 2))
	f.reconcileOnce()
	f.clock = f.clock.Add(f.options.MinHealthyTime)
	f.reconcileOnce()
	if got := f.describeState(); got != "in m2:2, departed from m1" {
		t.Error(got)
	}
}

func TestEvictionIsUndoneIfNoOtherClusterTakesTheWorkload(t *testing.T) {
	alone := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters, b.Status.AggregatedStatus = nil, nil
		b.Spec.GracefulEvictionTasks[0].Replicas = new(int32(2))
	}
	for name, test := range map[string]struct {
		m1   *clusterv1alpha1.Cluster
		want string
	}{
		"a cluster that is ready and not tainted": {newCluster("m1"), "in m1:2"},
		"a tainted cluster":                       {newCluster("m1", withTaint), "evicted from m1"},
		"a cluster that is not ready":             {newCluster("m1", notReady), "evicted from m1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, alone, test.m1, newWork("m1", 2))
			f.reconcileOnce()
			if diff := cmp.Diff(test.want, f.describeState()); diff != "" || f.writes > 1 {
				t.Errorf("%d writes (-want +got):\n%s", f.writes, diff)
			}
		})
	}
}

func TestTaskGetsItsStartTimeOnce(t *testing.T) {
	fresh := func(b *workv1alpha2.ResourceBinding) { b.Spec.GracefulEvictionTasks[0].CreationTimestamp = nil }
	f := newFixture(t, fresh, newCluster("m1", withTaint), newCluster("m2", notReady))
	if requeueAfter := f.reconcileOnce(); requeueAfter != f.options.Timeout || f.writes != 1 {
		t.Errorf("requeue after %s, %d writes", requeueAfter, f.writes)
	}
	f.clock = f.clock.Add(time.Minute)
	if requeueAfter := f.reconcileOnce(); requeueAfter != f.options.Timeout-time.Minute || f.writes != 1 {
		t.Errorf("requeue after %s, %d writes", requeueAfter, f.writes)
	}
}
