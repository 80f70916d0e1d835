package dependencies

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

// fixture is a reconciler with a fake API server that records all writes. The fake sends no watch
// events, so the tests call every reconcile themselves.
type fixture struct {
	t *testing.T
	*reconciler
	store    client.WithWatch
	recorder *record.FakeRecorder
	queue    queue
	writes   []string
	// references are the dependencies that the interpreter returns for the template.
	references []dependency.Reference
}

func (f *fixture) Rules(kind schema.GroupVersionKind) interpreter.Rules {
	if kind.Kind != "Deployment" {
		return interpreter.Rules{}
	}
	return interpreter.Rules{Dependencies: func(context.Context, *unstructured.Unstructured) ([]dependency.Reference, error) {
		return f.references, nil
	}}
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := looptest.NewScheme(t, corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, policyv1alpha1.AddToScheme, workv1alpha2.AddToScheme)
	w := &fixture{t: t, recorder: record.NewFakeRecorder(100), references: []dependency.Reference{referenceTo("ConfigMap", "settings")}}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&workv1alpha2.ResourceBinding{}).WithInterceptorFuncs(w.recordWrites())
	if err := loop.AddIndexes(looptest.Indexer{ClientBuilder: builder}, loop.BindingsByDependent, loop.BindingsByTemplate); err != nil {
		t.Fatal(err)
	}
	w.store = builder.Build()
	w.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(w.queue.ShutDown)
	w.reconciler = &reconciler{
		karmada: w.store, karmadaReader: w.store, templateReader: template.NewReader(nil, w.store), rules: w,
		events: loop.NewEvents(w.recorder), referenceIndex: newReferenceIndex(), conflicts: newConflicts(),
		propagated: DefaultOptions().Propagated,
	}
	w.watches = newDependencyWatches(watches.NewManager(t.Context()), w.referenceIndex, logr.Discard())
	w.watches.setQueue(w.queue)
	return w
}

func (f *fixture) recordWrites() interceptor.Funcs {
	record := func(verb string, object client.Object) {
		f.writes = append(f.writes, fmt.Sprintf("%s %s", verb, object.GetName()))
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, store client.WithWatch, object client.Object, o ...client.CreateOption) error {
			record("create", object)
			return store.Create(ctx, object, o...)
		},
		Patch: func(ctx context.Context, store client.WithWatch, object client.Object, p client.Patch, o ...client.PatchOption) error {
			record("patch", object)
			return store.Patch(ctx, object, p, o...)
		},
		Delete: func(ctx context.Context, store client.WithWatch, object client.Object, o ...client.DeleteOption) error {
			record("delete", object)
			return store.Delete(ctx, object, o...)
		},
	}
}

// reconcile reconciles a dependent and returns its result, writes and events.
func (f *fixture) reconcile(name string) (result reconcile.Result, writes, events []string) {
	f.t.Helper()
	f.writes = nil
	result, err := f.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: bindingKey(name)})
	if err != nil {
		f.t.Fatalf("the reconcile of %s failed: %v", name, err)
	}
	for len(f.recorder.Events) > 0 {
		events = append(events, <-f.recorder.Events)
	}
	return result, f.writes, events
}

// takeQueue returns the names of the queued dependents and removes them.
func (f *fixture) takeQueue() (names []string) {
	for f.queue.Len() > 0 {
		one, _ := f.queue.Get()
		f.queue.Done(one)
		names = append(names, one.Name)
	}
	return names
}

func (f *fixture) binding(name string) *workv1alpha2.ResourceBinding {
	f.t.Helper()
	found := &workv1alpha2.ResourceBinding{}
	if err := f.store.Get(f.t.Context(), bindingKey(name), found); err != nil {
		f.t.Fatal(err)
	}
	return found
}

// updateBinding changes a stored binding, as another client would.
func (f *fixture) updateBinding(name string, change func(*workv1alpha2.ResourceBinding)) {
	f.t.Helper()
	found := f.binding(name)
	change(found)
	if err := f.store.Update(f.t.Context(), found); err != nil {
		f.t.Fatal(err)
	}
}

func bindingKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func referenceTo(kind, name string) dependency.Reference {
	return dependency.Reference{APIVersion: "v1", Kind: kind, Namespace: "shop", Name: name}
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
}

func settingsConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings", UID: "uid-settings"}}
}

func clusterRole(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
}

// dependent returns the binding of a Deployment that runs in m1.
func dependent(name string) *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name + "-deployment", UID: types.UID("uid-binding-" + name),
			Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-" + name},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:      workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
			PropagateDeps: true, Clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}},
			ConflictResolution: policyv1alpha1.ConflictAbort, Placement: &policyv1alpha1.Placement{},
		},
	}
}
