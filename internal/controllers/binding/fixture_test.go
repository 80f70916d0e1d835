package binding

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/api"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

// fixture is a reconciler with a fake API server that records all writes. It tests only the
// reconciler, and not the behavior of an API server.
type fixture struct {
	t *testing.T
	*reconciler
	store    client.Client
	recorder *record.FakeRecorder
	// currentTime is the time that the orphan tracker reads as the current time.
	currentTime time.Time

	mu       sync.Mutex
	requests []string
}

type noRules struct{}

func (noRules) Rules(schema.GroupVersionKind) interpreter.Rules { return interpreter.Rules{} }

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &fixture{t: t, recorder: record.NewFakeRecorder(100), currentTime: time.Unix(0, 0)}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(bindingTo()).WithInterceptorFuncs(w.recordRequests())
	if err := loop.AddIndexes(looptest.Indexer{ClientBuilder: builder}, indexes()...); err != nil {
		t.Fatal(err)
	}
	w.store = builder.Build()
	synced, err := newSyncDuration(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w.reconciler = &reconciler{
		options: DefaultOptions(), namespaced: true, karmada: w.store, karmadaReader: w.store, templateReader: template.NewReader(nil, w.store), rules: noRules{},
		events: loop.NewEvents(w.recorder), writes: loop.NewWrites[types.NamespacedName](time.Now),
		orphans: newOrphanTracker(func() time.Time { return w.currentTime }), syncDuration: synced,
	}
	return w
}

func (f *fixture) recordRequests() interceptor.Funcs {
	record := func(verb string, object client.Object) {
		f.mu.Lock()
		defer f.mu.Unlock()
		written := fmt.Sprintf("%T", object)
		if _, ok := object.(*metav1.PartialObjectMetadata); ok {
			written = "metadata of " + object.GetObjectKind().GroupVersionKind().Kind
		}
		f.requests = append(f.requests, verb+" "+written)
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			record("create", object)
			return c.Create(ctx, object, o...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.UpdateOption) error {
			record("update", object)
			return c.Update(ctx, object, o...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, p client.Patch, o ...client.PatchOption) error {
			record("patch", object)
			return c.Patch(ctx, object, p, o...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteOption) error {
			record("delete", object)
			return c.Delete(ctx, object, o...)
		},
	}
}

// reconcile runs one reconcile and returns its result and its writes.
func (f *fixture) reconcile() (reconcile.Result, []string) {
	f.t.Helper()
	f.requests = nil
	result, err := f.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web-deployment"}})
	if err != nil {
		f.t.Fatalf("the reconcile failed: %v", err)
	}
	return result, f.requests
}

// takeEvents returns the events since the last call.
func (f *fixture) takeEvents() []string {
	var events []string
	for {
		select {
		case event := <-f.recorder.Events:
			events = append(events, event)
		default:
			return events
		}
	}
}

func (f *fixture) updateBinding(change func(*workv1alpha2.ResourceBinding)) {
	f.t.Helper()
	bound := &workv1alpha2.ResourceBinding{}
	if err := f.store.Get(f.t.Context(), types.NamespacedName{Namespace: "shop", Name: "web-deployment"}, bound); err != nil {
		f.t.Fatal(err)
	}
	change(bound)
	if err := f.store.Update(f.t.Context(), bound); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) update(object client.Object) {
	f.t.Helper()
	if err := f.store.Update(f.t.Context(), object); err != nil {
		f.t.Fatal(err)
	}
}

// updateTemplate changes the Deployment and returns it.
func (f *fixture) updateTemplate(change func(*appsv1.Deployment)) *appsv1.Deployment {
	f.t.Helper()
	template := &appsv1.Deployment{}
	if err := f.store.Get(f.t.Context(), client.ObjectKeyFromObject(deployment()), template); err != nil {
		f.t.Fatal(err)
	}
	change(template)
	f.update(template)
	return template
}

// templateState returns the value with which a binding records the state of the template.
func (f *fixture) templateState() string {
	f.t.Helper()
	template := labelledDeployment(nil)
	if err := f.store.Get(f.t.Context(), client.ObjectKeyFromObject(template), template); err != nil {
		f.t.Fatal(err)
	}
	state, err := policy.RelevantHash(template)
	if err != nil {
		f.t.Fatal(err)
	}
	return state
}

// binding returns the binding, or nil if it does not exist.
func (f *fixture) binding() *workv1alpha2.ResourceBinding {
	f.t.Helper()
	bound := &workv1alpha2.ResourceBinding{}
	err := f.store.Get(f.t.Context(), types.NamespacedName{Namespace: "shop", Name: "web-deployment"}, bound)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return bound
}

// recordedFailures returns the failures that the binding records, by cluster.
func (f *fixture) recordedFailures() map[string]string {
	f.t.Helper()
	bound := f.binding()
	if bound == nil || bound.Annotations[workv1alpha2.RenderFailuresAnnotation] == "" {
		return nil
	}
	var failures map[string]string
	if err := json.Unmarshal([]byte(bound.Annotations[workv1alpha2.RenderFailuresAnnotation]), &failures); err != nil {
		f.t.Fatal(err)
	}
	return failures
}

// works returns all Works, including terminating ones.
func (f *fixture) works() []workv1alpha1.Work {
	f.t.Helper()
	list := &workv1alpha1.WorkList{}
	if err := f.store.List(f.t.Context(), list); err != nil {
		f.t.Fatal(err)
	}
	return list.Items
}

// setOwners sets the owners of all Works.
func (f *fixture) setOwners(owners []metav1.OwnerReference) {
	f.t.Helper()
	for _, each := range f.works() {
		each.OwnerReferences = owners
		if err := f.store.Update(f.t.Context(), &each); err != nil {
			f.t.Fatal(err)
		}
	}
}

// clustersWithWorks returns the clusters with a Work that is not terminating.
func (f *fixture) clustersWithWorks() []string {
	f.t.Helper()
	var names []string
	for _, each := range f.works() {
		if name, ok := work.ClusterOf(each.Namespace); ok && each.DeletionTimestamp == nil {
			names = append(names, name)
		}
	}
	return names
}

// workIDs returns the permanent IDs of all Works, including terminating ones.
func (f *fixture) workIDs() map[string]bool {
	f.t.Helper()
	ids := map[string]bool{}
	for _, each := range f.works() {
		ids[each.Labels[workv1alpha1.WorkPermanentIDLabel]] = true
	}
	return ids
}

func cluster(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-1", Labels: map[string]string{"app": "web"}},
	}
}

func bindingTo(clusters ...string) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-deployment", UID: "binding-1", Finalizers: []string{workv1alpha2.BindingControllerFinalizer},
		Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-1"},
	}}
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	for _, name := range clusters {
		bound.Spec.Clusters = append(bound.Spec.Clusters, workv1alpha2.TargetCluster{Name: name})
	}
	return bound
}

func labelledDeployment(labels map[string]string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	object.SetNamespace("shop")
	object.SetName("web")
	object.SetLabels(labels)
	return object
}

var _ binding.Object = bindingTo()
