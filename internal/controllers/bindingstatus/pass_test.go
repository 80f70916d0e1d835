package bindingstatus

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
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
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
	"karmada.io/karmada/internal/domain/work"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a reconciler over a store that counts what is written. It is a stand-in
// for wiring only: what an API server does with requests is not its business.
type world struct {
	*reconciler
	t        *testing.T
	store    client.Client
	failures *report.Renderings
	recorder *record.FakeRecorder
	writes   []string
	// refuse, if set, answers writes into the template.
	refuse error
}

type indexing struct{ *fake.ClientBuilder }

func (i indexing) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	i.WithIndex(object, field, values)
	return nil
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(api.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, failures: report.NewRenderings(), recorder: record.NewFakeRecorder(100)}
	built := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: w.patch, SubResourceUpdate: w.update}).
		WithStatusSubresource(&workv1alpha2.ResourceBinding{}, &appsv1.Deployment{}, &clusterv1alpha1.Cluster{}, &workv1alpha1.Work{})
	if err := errors.Join(indexWorks(indexing{built}), indexBindings(indexing{built})); err != nil {
		t.Fatal(err)
	}
	w.store = built.Build()
	w.failures.Conclude(request("shop", "web-deployment").NamespacedName, "binding", 1)
	w.reconciler = &reconciler{
		karmada: w.store, live: w.store, templates: template.NewReader(nil, w.store), renderings: w.failures,
		rules:  interpreter.Chain(builtin.New(builtin.Options{Now: time.Now})),
		events: observe.NewEvents(w.recorder), written: newLedger(), without: newStatusless(),
		patience: newPatience(calm, time.Second), lag: newPatience(lagCalm, time.Second), background: newSlots(backgroundStep),
		now: func() time.Time { return noon },
	}
	return w
}

func (w *world) patch(
	ctx context.Context, c client.Client, subresource string, object client.Object, p client.Patch, o ...client.SubResourcePatchOption,
) error {
	w.writes = append(w.writes, fmt.Sprintf("%s of %s", subresource, object.GetName()))
	if w.refuse != nil {
		return w.refuse
	}
	return c.SubResource(subresource).Patch(ctx, object, p, o...)
}

func (w *world) update(ctx context.Context, c client.Client, subresource string, object client.Object, o ...client.SubResourceUpdateOption) error {
	w.writes = append(w.writes, fmt.Sprintf("%s of %s", subresource, object.GetName()))
	return c.SubResource(subresource).Update(ctx, object, o...)
}

// pass runs one pass and returns its result and the writes that it made.
func (w *world) pass() (reconcile.Result, []string) {
	w.t.Helper()
	w.writes = nil
	result, err := w.Reconcile(w.t.Context(), request("shop", "web-deployment"))
	if err != nil {
		w.t.Fatalf("a pass ended with: %v", err)
	}
	return result, w.writes
}

// wrote checks what one pass writes, and that the next one writes nothing.
func (w *world) wrote(want ...string) {
	w.t.Helper()
	_, got := w.pass()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("writes (-want +got):\n%s", diff)
	}
	if _, again := w.pass(); len(again) > 0 {
		w.t.Errorf("the next pass wrote %q", again)
	}
}

func (w *world) binding() *workv1alpha2.ResourceBinding {
	w.t.Helper()
	bound := &workv1alpha2.ResourceBinding{}
	if err := w.store.Get(w.t.Context(), request("shop", "web-deployment").NamespacedName, bound); err != nil {
		w.t.Fatal(err)
	}
	return bound
}

func (w *world) fullyApplied() metav1.Condition {
	w.t.Helper()
	for _, condition := range w.binding().Status.Conditions {
		if condition.Type == workv1alpha2.FullyApplied {
			return condition
		}
	}
	w.t.Fatal("there is no condition FullyApplied")
	return metav1.Condition{}
}

func change[T client.Object](w *world, object T, change func(T)) {
	w.t.Helper()
	if err := w.store.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		w.t.Fatal(err)
	}
	change(object)
	stored, _ := object.DeepCopyObject().(client.Object)
	if err := w.store.Update(w.t.Context(), stored); err != nil {
		w.t.Fatal(err)
	}
	object.SetResourceVersion(stored.GetResourceVersion())
	if err := w.store.Status().Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

func webBinding(clusters ...string) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-deployment", UID: "binding", Generation: 1,
			Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "1"},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "web"},
		},
	}
	for _, cluster := range clusters {
		bound.Spec.Clusters = append(bound.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster, Replicas: 1})
	}
	return bound
}

func webTemplate() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web", Generation: 1}}
}

// webWork is a Work whose member has everything and is well.
func webWork(cluster string) *workv1alpha1.Work {
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: work.ExecutionNamespace(cluster), Name: "web", Generation: 1,
			Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "1"},
			Annotations: map[string]string{
				workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: "web-deployment",
			},
		},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{}}}},
		Status: workv1alpha1.WorkStatus{
			Conditions: []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: 1}},
			ManifestStatuses: []workv1alpha1.ManifestStatus{{
				Identifier: workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
				Status:     &runtime.RawExtension{Raw: []byte(`{"readyReplicas":1,"replicas":1,"resourceTemplateGeneration":1}`)}, Health: workv1alpha1.ResourceHealthy,
			}},
		},
	}
}

func webCluster(name string, ready metav1.ConditionStatus, since time.Time) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{
			Type: clusterv1alpha1.ClusterConditionReady, Status: ready, LastTransitionTime: metav1.NewTime(since),
		}}},
	}
}

func TestAPassWritesBindingAndTemplateOnce(t *testing.T) {
	w := newWorld(t, webBinding("m1", "m2"), webTemplate(), webWork("m1"), webWork("m2"))
	w.wrote("status of web-deployment", "status of web")
	got := w.template().Status
	said := said(got)
	got.Conditions = nil
	if diff := cmp.Diff(appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, ReadyReplicas: 2}, got); diff != "" {
		t.Errorf("status of the template (-want +got):\n%s", diff)
	}
	want := []string{"Available=True MinimumReplicasAvailable: True in every cluster", "Progressing=True NewReplicaSetAvailable: True in every cluster"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("conditions of the template (-want +got):\n%s", diff)
	}
}

// emptying sums up Deployments in two steps: another number goes by way of none.
type emptying struct{}

func (emptying) Rules(schema.GroupVersionKind) interpreter.Rules {
	return interpreter.Rules{
		Aggregate: func(_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			stored, _, _ := unstructured.NestedInt64(template.Object, "status", "replicas")
			wanted := int64(len(items))
			if stored == wanted {
				return template, nil
			}
			summed := template.DeepCopy()
			if stored != 0 {
				unstructured.RemoveNestedField(summed.Object, "status", "replicas")
				return summed, nil
			}
			return summed, unstructured.SetNestedField(summed.Object, wanted, "status", "replicas")
		},
	}
}

func TestAStatusMayTakeTwoSteps(t *testing.T) {
	template := webTemplate()
	template.Status.Replicas = 5
	w := newWorld(t, webBinding("m1", "m2"), template, webWork("m1"), webWork("m2"))
	w.rules = emptying{}
	w.wrote("status of web-deployment", "status of web", "status of web")
	if err := w.store.Get(t.Context(), client.ObjectKeyFromObject(template), template); err != nil {
		t.Fatal(err)
	}
	if template.Status.Replicas != 2 {
		t.Errorf("the template has %d replicas", template.Status.Replicas)
	}
}

func TestATemplateThatCannotTakeAStatusIsNotTriedAgain(t *testing.T) {
	of := []client.Object{webBinding("m1"), webWork("m1")}
	notServed := apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web")
	other := webTemplate()
	other.UID = "another"
	for name, tc := range map[string]struct {
		template []client.Object
		refuse   error
		rules    interpreter.Source
		want     []string
	}{
		"it is gone":                          {nil, nil, nil, []string{"status of web-deployment"}},
		"another one took its name":           {[]client.Object{other}, nil, nil, []string{"status of web-deployment"}},
		"its kind has no status":              {[]client.Object{webTemplate()}, notServed, nil, []string{"status of web-deployment", "status of web"}},
		"nobody knows how to sum up its kind": {[]client.Object{webTemplate()}, nil, interpreter.Chain(), []string{"status of web-deployment"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.template, of...)...)
			w.refuse = tc.refuse
			if tc.rules != nil {
				w.rules = tc.rules
			}
			w.wrote(tc.want...)
			if result, _ := w.pass(); !result.IsZero() {
				t.Errorf("it will be tried again: %+v", result)
			}
		})
	}
}

func TestWhoeverWaitsForAnOldCopyToGoSaysSo(t *testing.T) {
	for name, tc := range map[string]struct {
		dead bool
		want string
	}{
		"as long as it is there":          {false, ": m1: evicted with purge mode Directly, so no other cluster gets changes before the copy there is gone; m2: there is no Work yet"},
		"unless its cluster was given up": {true, ": m2: there is no Work yet"},
	} {
		t.Run(name, func(t *testing.T) {
			bound, old, left := webBinding("m2"), webWork("m1"), webCluster("m1", metav1.ConditionTrue, noon)
			bound.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeDirectly}}
			old.DeletionTimestamp, old.Finalizers = &metav1.Time{Time: noon}, []string{workv1alpha1.ExecutionFinalizer}
			if tc.dead {
				left.Annotations = map[string]string{clusterv1alpha1.DeclaredDeadAnnotation: clusterv1alpha1.DeclaredDeadValue}
			}
			w := newWorld(t, bound, webTemplate(), old, left)
			// Under way, it is written after a moment.
			w.pass()
			w.now = func() time.Time { return noon.Add(calm) }
			w.pass()
			if condition := w.fullyApplied(); condition.Message != workv1alpha2.FullyAppliedFailedMessage+tc.want {
				t.Errorf("condition = %+v", condition)
			}
		})
	}
}

func TestALostClusterMarksWhatItReported(t *testing.T) {
	lost := webCluster("m2", metav1.ConditionTrue, noon.Add(-time.Hour))
	w := newWorld(t, webBinding("m1", "m2"), webTemplate(), webWork("m1"), webWork("m2"), lost)
	w.wrote("status of web-deployment", "status of web")

	change(w, lost, func(c *clusterv1alpha1.Cluster) {
		c.Status = webCluster("m2", metav1.ConditionFalse, noon).Status
	})
	w.wrote("status of web-deployment")
	item := w.binding().Status.AggregatedStatus[1]
	if item.AppliedMessage != "status as of 2030-01-01T12:00:00Z: cluster m2 is not ready since then" || item.Health != workv1alpha2.ResourceHealthy || item.Status == nil {
		t.Errorf("item = %+v", item)
	}
	condition := w.fullyApplied()
	if condition.Status != metav1.ConditionTrue || condition.Message != workv1alpha2.FullyAppliedSuccessMessage+"; m2: the status is old, the cluster is not ready" {
		t.Errorf("condition = %+v", condition)
	}

	change(w, lost, func(c *clusterv1alpha1.Cluster) {
		c.Status = webCluster("m2", metav1.ConditionTrue, noon.Add(time.Hour)).Status
	})
	w.wrote("status of web-deployment")
	if message := w.binding().Status.AggregatedStatus[1].AppliedMessage; message != "" {
		t.Errorf("message after the return: %s", message)
	}
}

func TestAWorkThatCannotBeMadeIsToldOf(t *testing.T) {
	w := newWorld(t, webBinding("m1", "m2"), webTemplate(), webWork("m1"))
	w.failures.Set("binding", map[string]string{"m2": "no such path"})
	w.wrote("status of web-deployment", "status of web")
	if condition := w.fullyApplied(); condition.Message != workv1alpha2.FullyAppliedFailedMessage+": m2: no such path" {
		t.Errorf("condition = %+v", condition)
	}
	want := workv1alpha2.AggregatedStatusItem{ClusterName: "m2", AppliedMessage: "no such path", Health: workv1alpha2.ResourceUnknown}
	if diff := cmp.Diff(want, w.binding().Status.AggregatedStatus[1]); diff != "" {
		t.Errorf("item (-want +got):\n%s", diff)
	}
}

// later passes the time that members get for the newest state of their Works.
func (w *world) later() {
	now := w.now().Add(lagCalm)
	w.now = func() time.Time { return now }
}

// judged checks of which generation the condition is, and what it says.
func (w *world) judged(generation int64, status metav1.ConditionStatus) {
	w.t.Helper()
	if condition := w.fullyApplied(); condition.ObservedGeneration != generation || condition.Status != status {
		w.t.Errorf("condition = %+v, want %s of generation %d", condition, status, generation)
	}
}

// patient checks that a pass writes nothing yet.
func (w *world) patient() {
	w.t.Helper()
	if result, writes := w.pass(); len(writes) > 0 || result.RequeueAfter != lagCalm {
		w.t.Errorf("writes %q, again after %s; want none, after %s", writes, result.RequeueAfter, lagCalm)
	}
}

func TestTheConditionIsNotTrueOfAGenerationThatMembersDoNotHave(t *testing.T) {
	w := newWorld(t, webBinding("m1"), webTemplate(), webWork("m1"))
	w.wrote("status of web-deployment", "status of web")
	change(w, webBinding("m1"), func(b *workv1alpha2.ResourceBinding) { b.Generation = 2 })
	change(w, webWork("m1"), func(each *workv1alpha1.Work) { each.Generation = 2 })
	w.failures.Conclude(request("shop", "web-deployment").NamespacedName, "binding", 2)
	w.patient()
	w.judged(1, metav1.ConditionTrue)
	w.later()
	if _, writes := w.pass(); len(writes) != 1 {
		t.Errorf("when the member does not get it: writes %q", writes)
	}
	w.judged(2, metav1.ConditionFalse)
	change(w, webWork("m1"), func(each *workv1alpha1.Work) { each.Status.Conditions[0].ObservedGeneration = 2 })
	w.wrote("status of web-deployment")
	w.judged(2, metav1.ConditionTrue)
}

func TestTheConditionIsNotTrueOfAGenerationThatNoWorkIsOf(t *testing.T) {
	w := newWorld(t, webBinding("m1"), webTemplate(), webWork("m1"))
	w.wrote("status of web-deployment", "status of web")
	change(w, webBinding("m1"), func(b *workv1alpha2.ResourceBinding) { b.Generation = 2 })
	w.patient()
	w.later()
	if result, writes := w.pass(); len(writes) > 0 || result.RequeueAfter != unmadeDelay {
		t.Errorf("while nobody has looked at the binding: writes %q, again after %s", writes, result.RequeueAfter)
	}
	w.judged(1, metav1.ConditionTrue)
	w.failures.Conclude(request("shop", "web-deployment").NamespacedName, "binding", 2)
	w.wrote("status of web-deployment")
	w.judged(2, metav1.ConditionTrue)
}

func TestWorksOfAnotherBindingThatHasTheSameIDTellNothing(t *testing.T) {
	other := webWork("m2")
	other.Annotations = map[string]string{
		workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: "copied-deployment",
	}
	w := newWorld(t, webBinding("m1"), webTemplate(), webWork("m1"), other)
	w.wrote("status of web-deployment", "status of web")
	if items := w.binding().Status.AggregatedStatus; len(items) != 1 || items[0].ClusterName != "m1" {
		t.Errorf("items = %+v", items)
	}
}

func TestAStartTakesNothingBackBeforeTheBindingWasLookedAt(t *testing.T) {
	w := newWorld(t, webBinding("m1", "m2"), webTemplate(), webWork("m1"))
	broken := map[string]string{"m2": "no such path"}
	w.failures.Set("binding", broken)
	w.wrote("status of web-deployment", "status of web")

	restarted := report.NewRenderings()
	w.renderings, w.lag, w.patience = restarted, newPatience(lagCalm, time.Second), newPatience(calm, time.Second)
	if _, writes := w.pass(); len(writes) > 0 {
		t.Errorf("before: writes %q", writes)
	}
	restarted.Set("binding", broken)
	restarted.Conclude(request("shop", "web-deployment").NamespacedName, "binding", 1)
	if _, writes := w.pass(); len(writes) > 0 {
		t.Errorf("after: writes %q", writes)
	}
}

func TestOnlyAChangeOfReadinessWakesTheBindingsOfACluster(t *testing.T) {
	ready, lost := webCluster("m1", metav1.ConditionTrue, noon), webCluster("m1", metav1.ConditionFalse, noon.Add(time.Minute))
	reworded := lost.DeepCopy()
	reworded.Status.Conditions[0].Reason = "ClusterNotReady"
	for name, tc := range map[string]struct {
		before, after *clusterv1alpha1.Cluster
		want          int
	}{
		"it was lost":                           {ready, lost, 1},
		"it is back":                            {lost, ready, 1},
		"another reason for the same":           {lost, reworded, 0},
		"looked at for the first time":          {&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}, ready, 0},
		"one that has nothing was lost":         {webCluster("m3", "True", noon), webCluster("m3", "False", noon), 0},
		"its resources are others, it is ready": {ready, ready, 0},
	} {
		t.Run(name, func(t *testing.T) {
			foreign := webWork("m1")
			foreign.Name, foreign.Annotations = "foreign", nil
			w := newWorld(t, webBinding("m1"), webWork("m1"), webWork("m2"), foreign)
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			t.Cleanup(q.ShutDown)
			w.onCluster().Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, q)
			if q.Len() != tc.want {
				t.Errorf("%d bindings are queued, want %d", q.Len(), tc.want)
			}
		})
	}
}

func TestBackgroundWorkIsSpreadOverTime(t *testing.T) {
	s := newSlots(time.Second)
	take := func(name string, now time.Time) time.Duration {
		delay, ok := s.take(request("shop", name), now)
		if !ok {
			return -1
		}
		return delay
	}
	for i, step := range []struct {
		name string
		at   time.Duration
		want time.Duration
	}{
		{"a", 0, 0}, {"b", 0, time.Second}, {"b", 0, -1}, {"c", 500 * time.Millisecond, 1500 * time.Millisecond}, {"d", time.Minute, 0},
	} {
		if got := take(step.name, noon.Add(step.at)); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	s.free(request("shop", "b"))
	if got := take("b", noon.Add(time.Hour)); got != 0 {
		t.Errorf("after it was looked at: %s", got)
	}
}

func TestABindingIsFoundByItsUID(t *testing.T) {
	clusterWide := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader-clusterrole", UID: "wide"}}
	w := newWorld(t, webBinding("m1"), clusterWide)
	for uid, want := range map[types.UID]reconcile.Request{
		"binding": request("shop", "web-deployment"), "wide": request("", "reader-clusterrole"), "gone": {},
	} {
		got, ok, err := w.requestFor(t.Context(), uid)
		if err != nil || got != want || ok != (uid != "gone") {
			t.Errorf("%s: %v, %v, %v; want %v", uid, got, ok, err, want)
		}
	}
}
