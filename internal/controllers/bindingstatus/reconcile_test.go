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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// fixture is a reconciler with a fake API server that records all writes. It tests only the
// reconciler, and not the behavior of an API server.
type fixture struct {
	*reconciler
	t        *testing.T
	store    client.Client
	recorder *record.FakeRecorder
	writes   []string
	// patchError, if set, is returned for writes of the template's status.
	patchError error
}

var policy = loop.DefaultPacingPolicy()

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(api.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &fixture{t: t, recorder: record.NewFakeRecorder(100)}
	built := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: w.recordPatch, SubResourceUpdate: w.recordUpdate}).
		WithStatusSubresource(&workv1alpha2.ResourceBinding{}, &appsv1.Deployment{}, &clusterv1alpha1.Cluster{}, &workv1alpha1.Work{})
	if err := loop.AddIndexes(looptest.Indexer{ClientBuilder: built}, loop.WorksByBindingID, loop.BindingsByTemplate); err != nil {
		t.Fatal(err)
	}
	w.store = built.Build()
	w.reconciler = &reconciler{
		karmada: w.store, karmadaReader: w.store, templateReader: template.NewReader(nil, w.store),
		rules:  interpreter.New(builtin.New(builtin.Options{Now: time.Now})),
		events: loop.NewEvents(w.recorder), writes: loop.NewWrites[reconcile.Request](time.Now), kindsWithoutStatus: newKindsWithoutStatus(),
		progress: newProgressPacer(policy), lag: newProgressPacer(policy), background: newBackgroundPacer(policy), pacing: policy,
		now: func() time.Time { return noon },
	}
	return w
}

func (f *fixture) recordPatch(
	ctx context.Context, c client.Client, subresource string, object client.Object, p client.Patch, o ...client.SubResourcePatchOption,
) error {
	f.writes = append(f.writes, fmt.Sprintf("%s of %s", subresource, object.GetName()))
	if f.patchError != nil {
		return f.patchError
	}
	return c.SubResource(subresource).Patch(ctx, object, p, o...)
}

func (f *fixture) recordUpdate(ctx context.Context, c client.Client, subresource string, object client.Object, o ...client.SubResourceUpdateOption) error {
	f.writes = append(f.writes, fmt.Sprintf("%s of %s", subresource, object.GetName()))
	return c.SubResource(subresource).Update(ctx, object, o...)
}

// reconcile runs one reconcile and returns its result and its writes.
func (f *fixture) reconcile() (reconcile.Result, []string) {
	f.t.Helper()
	f.writes = nil
	result, err := f.Reconcile(f.t.Context(), request("shop", "web-deployment"))
	if err != nil {
		f.t.Fatalf("the reconcile failed: %v", err)
	}
	return result, f.writes
}

// expectWrites checks the writes of one reconcile, and checks that the next reconcile writes
// nothing.
func (f *fixture) expectWrites(want ...string) {
	f.t.Helper()
	_, got := f.reconcile()
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Errorf("writes (-want +got):\n%s", diff)
	}
	if _, again := f.reconcile(); len(again) > 0 {
		f.t.Errorf("the next reconcile wrote %q", again)
	}
}

func (f *fixture) binding() *workv1alpha2.ResourceBinding {
	f.t.Helper()
	bound := &workv1alpha2.ResourceBinding{}
	if err := f.store.Get(f.t.Context(), request("shop", "web-deployment").NamespacedName, bound); err != nil {
		f.t.Fatal(err)
	}
	return bound
}

func (f *fixture) fullyApplied() metav1.Condition {
	f.t.Helper()
	for _, condition := range f.binding().Status.Conditions {
		if condition.Type == workv1alpha2.FullyApplied {
			return condition
		}
	}
	f.t.Fatal("there is no condition FullyApplied")
	return metav1.Condition{}
}

func updateStored[T client.Object](w *fixture, object T, change func(T)) {
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

// webWork is a Work that is rendered from webBinding, and applied and healthy in its member.
func webWork(cluster string) *workv1alpha1.Work {
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: work.ExecutionNamespace(cluster), Name: "web", Generation: 1,
			Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "1"},
			Annotations: map[string]string{
				workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: "web-deployment",
				workv1alpha1.RenderedFromAnnotation: work.RenderedFrom(webBinding(), workv1alpha2.TargetCluster{Name: cluster, Replicas: 1}, "1"),
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

func TestReconcileWritesBindingAndTemplateOnce(t *testing.T) {
	w := newFixture(t, webBinding("m1", "m2"), webTemplate(), webWork("m1"), webWork("m2"))
	w.expectWrites("status of web-deployment", "status of web")
	got := w.template().Status
	said := conditionTexts(got)
	got.Conditions = nil
	if diff := cmp.Diff(appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, ReadyReplicas: 2}, got); diff != "" {
		t.Errorf("status of the template (-want +got):\n%s", diff)
	}
	want := []string{"Available=True MinimumReplicasAvailable: True in every cluster", "Progressing=True NewReplicaSetAvailable: True in every cluster"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("conditions of the template (-want +got):\n%s", diff)
	}
}

func TestStatusWriteReportsScheduling(t *testing.T) {
	bound := webBinding("m1", "m2")
	bound.Spec.Placement = &policyv1alpha1.Placement{}
	binding.RecordScheduled(bound, noon)
	w := newFixture(t, bound, webTemplate(), webWork("m1"), webWork("m2"))
	w.expectWrites("status of web-deployment", "status of web")
	got := w.binding().Status
	if !meta.IsStatusConditionTrue(got.Conditions, workv1alpha2.Scheduled) || got.SchedulerObservedGeneration != 1 || got.LastScheduledTime == nil {
		t.Errorf("the status of the binding is %+v", got)
	}

	updateStored(w, bound, func(b *workv1alpha2.ResourceBinding) { b.Generation = 2 })
	w.expectWrites("status of web-deployment")
	if got := w.binding().Status; got.SchedulerObservedGeneration != 2 {
		t.Errorf("the status of the binding after a new version of the template is %+v", got)
	}
}

// twoStepRules aggregate Deployments in two writes. The first write removes a changed number.
type twoStepRules struct{}

func (twoStepRules) Rules(schema.GroupVersionKind) interpreter.Rules {
	return interpreter.Rules{
		AggregateStatus: func(_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			stored, _, _ := unstructured.NestedInt64(template.Object, "status", "replicas")
			wanted := int64(len(items))
			if stored == wanted {
				return template, nil
			}
			aggregated := template.DeepCopy()
			if stored != 0 {
				unstructured.RemoveNestedField(aggregated.Object, "status", "replicas")
				return aggregated, nil
			}
			return aggregated, unstructured.SetNestedField(aggregated.Object, wanted, "status", "replicas")
		},
	}
}

func TestStatusMayTakeTwoWrites(t *testing.T) {
	template := webTemplate()
	template.Status.Replicas = 5
	w := newFixture(t, webBinding("m1", "m2"), template, webWork("m1"), webWork("m2"))
	w.rules = twoStepRules{}
	w.expectWrites("status of web-deployment", "status of web", "status of web")
	if err := w.store.Get(t.Context(), client.ObjectKeyFromObject(template), template); err != nil {
		t.Fatal(err)
	}
	if template.Status.Replicas != 2 {
		t.Errorf("the template has %d replicas", template.Status.Replicas)
	}
}

func TestTemplateWithoutStatusIsNotRetried(t *testing.T) {
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
		"it does not exist":                {nil, nil, nil, []string{"status of web-deployment"}},
		"another one took its name":        {[]client.Object{other}, nil, nil, []string{"status of web-deployment"}},
		"its kind has no status":           {[]client.Object{webTemplate()}, notServed, nil, []string{"status of web-deployment", "status of web"}},
		"its kind has no aggregation rule": {[]client.Object{webTemplate()}, nil, interpreter.New(), []string{"status of web-deployment"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, append(tc.template, of...)...)
			w.patchError = tc.refuse
			if tc.rules != nil {
				w.rules = tc.rules
			}
			w.expectWrites(tc.want...)
			if result, _ := w.reconcile(); !result.IsZero() {
				t.Errorf("it is retried: %+v", result)
			}
		})
	}
}

func TestConditionNamesClusterWithOldCopy(t *testing.T) {
	for name, tc := range map[string]struct {
		dead bool
		want string
	}{
		"while it exists":                     {false, ": m1: evicted with purge mode Directly, so no other cluster gets changes before the copy there is gone; m2: there is no Work yet"},
		"unless its cluster is declared dead": {true, ": m2: there is no Work yet"},
	} {
		t.Run(name, func(t *testing.T) {
			bound, old, left := webBinding("m2"), webWork("m1"), webCluster("m1", metav1.ConditionTrue, noon)
			bound.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeDirectly}}
			old.DeletionTimestamp, old.Finalizers = &metav1.Time{Time: noon}, []string{workv1alpha1.ExecutionFinalizer}
			if tc.dead {
				left.Annotations = map[string]string{clusterv1alpha1.DeclaredDeadAnnotation: clusterv1alpha1.DeclaredDeadValue}
			}
			w := newFixture(t, bound, webTemplate(), old, left)
			// The target m2 has no Work, so the status of the binding is written only after a
			// delay.
			w.expectNoWriteYet()
			w.passLagDelay()
			w.reconcile()
			if condition := w.fullyApplied(); condition.Message != workv1alpha2.FullyAppliedFailedMessage+tc.want {
				t.Errorf("condition = %+v", condition)
			}
		})
	}
}

func TestLostClusterMarksItsStatusAsOld(t *testing.T) {
	lost := webCluster("m2", metav1.ConditionTrue, noon.Add(-time.Hour))
	w := newFixture(t, webBinding("m1", "m2"), webTemplate(), webWork("m1"), webWork("m2"), lost)
	w.expectWrites("status of web-deployment", "status of web")

	updateStored(w, lost, func(c *clusterv1alpha1.Cluster) {
		c.Status = webCluster("m2", metav1.ConditionFalse, noon).Status
	})
	w.expectWrites("status of web-deployment")
	item := w.binding().Status.AggregatedStatus[1]
	if item.AppliedMessage != "status as of 2030-01-01T12:00:00Z: cluster m2 is not ready since then" || item.Health != workv1alpha2.ResourceHealthy || item.Status == nil {
		t.Errorf("item = %+v", item)
	}
	condition := w.fullyApplied()
	if condition.Status != metav1.ConditionTrue || condition.Message != workv1alpha2.FullyAppliedSuccessMessage+"; m2: the status is old, the cluster is not ready" {
		t.Errorf("condition = %+v", condition)
	}

	updateStored(w, lost, func(c *clusterv1alpha1.Cluster) {
		c.Status = webCluster("m2", metav1.ConditionTrue, noon.Add(time.Hour)).Status
	})
	w.expectWrites("status of web-deployment")
	if message := w.binding().Status.AggregatedStatus[1].AppliedMessage; message != "" {
		t.Errorf("message after the return: %s", message)
	}
}

func TestRenderErrorIsReported(t *testing.T) {
	bound := webBinding("m1", "m2")
	bound.Annotations = map[string]string{workv1alpha2.RenderFailuresAnnotation: `{"m2":"no such path"}`}
	w := newFixture(t, bound, webTemplate(), webWork("m1"))
	w.expectWrites("status of web-deployment", "status of web")
	if condition := w.fullyApplied(); condition.Message != workv1alpha2.FullyAppliedFailedMessage+": m2: no such path" {
		t.Errorf("condition = %+v", condition)
	}
	want := workv1alpha2.AggregatedStatusItem{ClusterName: "m2", AppliedMessage: "no such path", Health: workv1alpha2.ResourceUnknown}
	if diff := cmp.Diff(want, w.binding().Status.AggregatedStatus[1]); diff != "" {
		t.Errorf("item (-want +got):\n%s", diff)
	}
}

// passLagDelay advances the clock by the delay that members get to apply their Works.
func (f *fixture) passLagDelay() {
	now := f.now().Add(policy.Lag)
	f.now = func() time.Time { return now }
}

// expectCondition checks the generation and the status of the condition FullyApplied.
func (f *fixture) expectCondition(generation int64, status metav1.ConditionStatus) {
	f.t.Helper()
	if condition := f.fullyApplied(); condition.ObservedGeneration != generation || condition.Status != status {
		f.t.Errorf("condition = %+v, want %s of generation %d", condition, status, generation)
	}
}

// expectNoWriteYet checks that a reconcile writes nothing at the current time.
func (f *fixture) expectNoWriteYet() {
	f.t.Helper()
	if result, writes := f.reconcile(); len(writes) > 0 || result.RequeueAfter != policy.Lag {
		f.t.Errorf("writes %q, requeued after %s; want none, after %s", writes, result.RequeueAfter, policy.Lag)
	}
}

func TestFullyAppliedWaitsForMembers(t *testing.T) {
	w := newFixture(t, webBinding("m1"), webTemplate(), webWork("m1"))
	w.expectWrites("status of web-deployment", "status of web")
	updateStored(w, webBinding("m1"), func(b *workv1alpha2.ResourceBinding) { b.Generation = 2 })
	updateStored(w, webWork("m1"), func(each *workv1alpha1.Work) { each.Generation = 2 })
	w.expectNoWriteYet()
	w.expectCondition(1, metav1.ConditionTrue)
	w.passLagDelay()
	if _, writes := w.reconcile(); len(writes) != 1 {
		t.Errorf("while the member does not have it: writes %q", writes)
	}
	w.expectCondition(2, metav1.ConditionFalse)
	updateStored(w, webWork("m1"), func(each *workv1alpha1.Work) { each.Status.Conditions[0].ObservedGeneration = 2 })
	w.expectWrites("status of web-deployment")
	w.expectCondition(2, metav1.ConditionTrue)
}

func TestFullyAppliedWaitsForRendering(t *testing.T) {
	w := newFixture(t, webBinding("m1"), webTemplate(), webWork("m1"))
	w.expectWrites("status of web-deployment", "status of web")
	updateStored(w, webBinding("m1"), func(b *workv1alpha2.ResourceBinding) { b.Generation, b.Spec.Resource.ResourceVersion = 2, "2" })
	w.expectNoWriteYet()
	w.passLagDelay()
	// A poll is not needed, because the change of the Work queues the binding.
	if result, writes := w.reconcile(); len(writes) > 0 || !result.IsZero() {
		t.Errorf("before the binding is rendered: writes %q, requeued after %s", writes, result.RequeueAfter)
	}
	w.expectCondition(1, metav1.ConditionTrue)
	updateStored(w, webWork("m1"), func(each *workv1alpha1.Work) {
		each.Annotations[workv1alpha1.RenderedFromAnnotation] = work.RenderedFrom(w.binding(), w.binding().Spec.Clusters[0], "3")
	})
	w.expectWrites("status of web-deployment")
	w.expectCondition(2, metav1.ConditionTrue)
}

// The controller that renders Works was switched off before it reconciled the binding, so the Work
// is still rendered from an earlier version of the template.
func TestFullyAppliedIsNotClaimedForOutdatedWorks(t *testing.T) {
	bound := webBinding("m1")
	bound.Spec.Resource.ResourceVersion = "2"
	w := newFixture(t, bound, webTemplate(), webWork("m1"))
	w.expectNoWriteYet()
	w.passLagDelay()
	w.expectWrites("status of web-deployment", "status of web")
	if status := w.binding().Status; len(status.Conditions) > 0 || len(status.AggregatedStatus) != 1 {
		t.Errorf("status = %+v", status)
	}
}

// The controller that renders Works may be switched off. It is not needed if a new generation of
// the binding changes nothing in the Works, because the Works then still show that they are
// current.
func TestFullyAppliedFollowsGenerationThatWorksShow(t *testing.T) {
	w := newFixture(t, webBinding("m1"), webTemplate(), webWork("m1"))
	w.expectWrites("status of web-deployment", "status of web")
	updateStored(w, webBinding("m1"), func(b *workv1alpha2.ResourceBinding) { b.Generation, b.Spec.SchedulerName = 2, "other" })
	w.expectWrites("status of web-deployment")
	w.expectCondition(2, metav1.ConditionTrue)
}

// If a Work was created by an earlier release, or if its content did not change, the Work does not
// show that it is current. Then the binding records that its Works are current.
func TestFullyAppliedFollowsGenerationThatBindingRecords(t *testing.T) {
	w := newFixture(t, webBinding("m1"), webTemplate(), webWork("m1"))
	w.expectWrites("status of web-deployment", "status of web")
	updateStored(w, webBinding("m1"), func(b *workv1alpha2.ResourceBinding) { b.Generation, b.Spec.Resource.ResourceVersion = 2, "2" })
	w.expectNoWriteYet()
	updateStored(w, webBinding("m1"), func(b *workv1alpha2.ResourceBinding) {
		b.Annotations = map[string]string{workv1alpha2.RenderedGenerationAnnotation: "binding/2"}
	})
	w.expectWrites("status of web-deployment")
	w.expectCondition(2, metav1.ConditionTrue)
}

func TestWorksOfBindingWithSameIDAreIgnored(t *testing.T) {
	other := webWork("m2")
	other.Annotations = map[string]string{
		workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: "copied-deployment",
	}
	w := newFixture(t, webBinding("m1"), webTemplate(), webWork("m1"), other)
	w.expectWrites("status of web-deployment", "status of web")
	if items := w.binding().Status.AggregatedStatus; len(items) != 1 || items[0].ClusterName != "m1" {
		t.Errorf("items = %+v", items)
	}
}

// A new process must compute the same status from the stored objects alone, because the controller
// that renders Works may run in another process or be switched off.
func TestRestartKeepsStatus(t *testing.T) {
	bound := webBinding("m1", "m2")
	bound.Annotations = map[string]string{workv1alpha2.RenderFailuresAnnotation: `{"m2":"no such path"}`}
	w := newFixture(t, bound, webTemplate(), webWork("m1"))
	w.expectWrites("status of web-deployment", "status of web")

	w.lag, w.progress, w.reconciler.writes = newProgressPacer(policy), newProgressPacer(policy), loop.NewWrites[reconcile.Request](time.Now)
	if result, writes := w.reconcile(); len(writes) > 0 || !result.IsZero() {
		t.Errorf("writes %q, requeued after %s", writes, result.RequeueAfter)
	}
}

func TestClusterReadinessQueuesBindings(t *testing.T) {
	ready, lost := webCluster("m1", metav1.ConditionTrue, noon), webCluster("m1", metav1.ConditionFalse, noon.Add(time.Minute))
	reworded := lost.DeepCopy()
	reworded.Status.Conditions[0].Reason = "ClusterNotReady"
	rejecting := lost.DeepCopy()
	rejecting.Status.Conditions = append(rejecting.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionCredentialsValid, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.CredentialsRefusedReason, Message: "the cluster rejects the token",
	})
	for name, tc := range map[string]struct {
		before, after *clusterv1alpha1.Cluster
		want          int
	}{
		"it rejects the credentials":       {lost, rejecting, 1},
		"it accepts the credentials again": {rejecting, lost, 1},
		"it was lost":                      {ready, lost, 1},
		"it returned":                      {lost, ready, 1},
		"another reason for the same":      {lost, reworded, 0},
		"its first Ready condition":        {&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}, ready, 0},
		"a cluster without Works was lost": {webCluster("m3", "True", noon), webCluster("m3", "False", noon), 0},
		"no change of readiness":           {ready, ready, 0},
	} {
		t.Run(name, func(t *testing.T) {
			foreign := webWork("m1")
			foreign.Name, foreign.Annotations = "foreign", nil
			w := newFixture(t, webBinding("m1"), webWork("m1"), webWork("m2"), foreign)
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			t.Cleanup(q.ShutDown)
			w.newClusterHandler().Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, q)
			if q.Len() != tc.want {
				t.Errorf("%d bindings are queued, want %d", q.Len(), tc.want)
			}
		})
	}
}
