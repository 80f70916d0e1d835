package dependencies

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/access/watches/watchestest"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/policy"
)

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

func selector(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// bindingRequiredBy returns a binding that lists the named dependents.
func bindingRequiredBy(names ...string) *workv1alpha2.ResourceBinding {
	made := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings-configmap", Labels: map[string]string{}}}
	made.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}
	for _, name := range names {
		made.Spec.RequiredBy = append(made.Spec.RequiredBy, workv1alpha2.BindingSnapshot{Namespace: "shop", Name: name})
		made.Labels[workv1alpha2.DependedByLabelPrefix+name] = name
	}
	return made
}

func TestBindingCreateQueuesDependents(t *testing.T) {
	with := func(change func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
		made := dependent("web")
		change(made)
		return made
	}
	tests := map[string]struct {
		created client.Object
		initial bool
		want    []string
	}{
		"a binding with propagateDeps": {dependent("web"), false, []string{"web-deployment"}},
		"not without propagateDeps":    {with(func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false }), false, nil},
		"not without clusters":         {with(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil }), false, nil},
		"a binding with our finalizer": {with(func(b *workv1alpha2.ResourceBinding) {
			b.Spec.PropagateDeps, b.Finalizers = false, []string{workv1alpha2.BindingDependenciesDistributorFinalizer}
		}), true, []string{"web-deployment"}},
		"the listed dependents, in the initial list":      {bindingRequiredBy("a", "b"), true, []string{"a", "b"}},
		"not the dependents of a binding that we created": {bindingRequiredBy("a"), false, nil},
		"dependents that were detached during the create": {bindingRequiredBy("a", "b"), false, []string{"b"}},
		"none for a binding without dependents":           {bindingRequiredBy(), false, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.referenceIndex.put(bindingKey("a"), w.references)
			w.newBindingHandler().Create(t.Context(), event.CreateEvent{Object: tc.created, IsInInitialList: tc.initial}, w.queue)
			expectEqual(t, "queued", w.takeQueue(), tc.want...)
		})
	}
}

func TestBindingUpdateQueuesDependents(t *testing.T) {
	tests := map[string]struct {
		before *workv1alpha2.ResourceBinding
		change func(*workv1alpha2.ResourceBinding)
		want   []string
	}{
		"another spec": {dependent("web"), func(b *workv1alpha2.ResourceBinding) { b.Generation++ }, []string{"web-deployment"}},
		"propagateDeps is switched off": {dependent("web"), func(b *workv1alpha2.ResourceBinding) {
			b.Generation++
			b.Spec.PropagateDeps = false
		}, []string{"web-deployment"}},
		"another spec of a dependent that keeps bindings attached": {finalized(dependent("web")), func(b *workv1alpha2.ResourceBinding) { b.Generation++ }, []string{"web-deployment"}},
		"a suspension by its own dependents": {dependent("web"), func(b *workv1alpha2.ResourceBinding) {
			b.Annotations = map[string]string{workv1alpha2.SuspendedByDependentsAnnotation: `{"shop/a":["*"]}`}
		}, []string{"web-deployment"}},
		"the deletion of a suspended dependency":            {suspendedBy("a", bindingRequiredBy("a", "b")), func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = &metav1.Time{} }, []string{"settings-configmap", "a", "b"}},
		"its deletion":                                      {dependent("web"), func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = &metav1.Time{} }, []string{"web-deployment"}},
		"not its status":                                    {dependent("web"), func(b *workv1alpha2.ResourceBinding) { b.Status.SchedulerObservedGeneration = 4 }, nil},
		"not labels of others":                              {bindingRequiredBy("a"), func(b *workv1alpha2.ResourceBinding) { b.Labels["x"] = "y" }, nil},
		"not a newly listed dependent":                      {bindingRequiredBy("a"), func(b *workv1alpha2.ResourceBinding) { *b = *bindingRequiredBy("a", "needy") }, nil},
		"a dependent that was detached while it was listed": {bindingRequiredBy("a"), func(b *workv1alpha2.ResourceBinding) { *b = *bindingRequiredBy("a", "b") }, []string{"b"}},
		"not a detached dependent that was listed before":   {bindingRequiredBy("a", "b"), func(b *workv1alpha2.ResourceBinding) { *b = *bindingRequiredBy("a", "b", "needy") }, nil},
		"a removed dependent":                               {bindingRequiredBy("a", "b"), func(b *workv1alpha2.ResourceBinding) { b.Spec.RequiredBy = b.Spec.RequiredBy[:1] }, []string{"b"}},
		"other clusters of a dependent": {bindingRequiredBy("a", "b"), func(b *workv1alpha2.ResourceBinding) {
			b.Spec.RequiredBy[1].Clusters = []workv1alpha2.TargetCluster{{Name: "m"}}
		}, []string{"b"}},
		"a removed label":                  {bindingRequiredBy("a", "b"), func(b *workv1alpha2.ResourceBinding) { b.Labels = nil }, []string{"a", "b"}},
		"a policy that claims the object":  {bindingRequiredBy("a", "b"), func(b *workv1alpha2.ResourceBinding) { policy.Claim{Name: "p", ID: "x"}.Apply(b) }, []string{"a"}},
		"settings that a user changed":     {bindingRequiredBy("a", "b"), func(b *workv1alpha2.ResourceBinding) { b.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite }, []string{"a"}},
		"a removed owner":                  {withOwner(bindingRequiredBy("a", "b")), func(b *workv1alpha2.ResourceBinding) { b.OwnerReferences = nil }, []string{"a"}},
		"preserveResourcesOnDeletion":      {bindingRequiredBy("a", "b"), func(b *workv1alpha2.ResourceBinding) { b.Spec.PreserveResourcesOnDeletion = new(true) }, []string{"a"}},
		"another object":                   {bindingRequiredBy("a", "b"), func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.UID = "other" }, []string{"a"}},
		"a removed placement":              {withPlacement(bindingRequiredBy("a", "b")), func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil }, []string{"a"}},
		"not a binding without dependents": {bindingRequiredBy(), func(b *workv1alpha2.ResourceBinding) { b.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite }, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.referenceIndex.put(bindingKey("needy"), w.references)
			after := tc.before.DeepCopy()
			tc.change(after)
			w.newBindingHandler().Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: after}, w.queue)
			expectEqual(t, "queued", w.takeQueue(), tc.want...)
		})
	}
}

// finalized returns a dependent that no longer propagates dependencies and has the finalizer.
func finalized(b *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	b.Spec.PropagateDeps, b.Finalizers = false, []string{workv1alpha2.BindingDependenciesDistributorFinalizer}
	return b
}

func suspendedBy(dependent string, b *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	b.Annotations = map[string]string{workv1alpha2.SuspendedByDependentsAnnotation: `{"shop/` + dependent + `":["*"]}`}
	return b
}

func withPlacement(b *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	b.Spec.Placement = &policyv1alpha1.Placement{}
	return b
}

func withOwner(b *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	b.OwnerReferences = []metav1.OwnerReference{{Name: "settings", UID: "u", Controller: new(true)}}
	return b
}

// emptyListClient is a client with a stale cache that does not contain the attached bindings.
type emptyListClient struct{ client.Client }

func (e emptyListClient) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return nil
}

func TestBindingAttachedDuringStaleReadIsDetached(t *testing.T) {
	w := newAttachedFixture(t)
	w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })
	w.karmada = emptyListClient{w.store}
	_, writes, _ := w.reconcile("web-deployment")
	expectEqual(t, "writes with a stale cache", writes, "patch web-deployment")
	w.karmada = w.store
	w.newBindingHandler().Create(t.Context(), event.CreateEvent{Object: w.binding("settings-configmap")}, w.queue)
	expectEqual(t, "queued", w.takeQueue(), "web-deployment")
	_, writes, _ = w.reconcile("web-deployment")
	expectEqual(t, "writes with a current cache", writes, "delete settings-configmap")
}

func TestBindingDeleteQueuesDependents(t *testing.T) {
	w := newFixture(t)
	w.referenceIndex.put(bindingKey("waiting"), []dependency.Reference{referenceTo("ConfigMap", "settings")})
	w.newBindingHandler().Delete(t.Context(), event.DeleteEvent{Object: bindingRequiredBy("a")}, w.queue)
	expectEqual(t, "queued", w.takeQueue(), "a", "waiting", "settings-configmap")
}

func TestObjectChangesQueueDependents(t *testing.T) {
	object := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		made := newObject(configMaps)
		made.SetNamespace("shop")
		made.SetName("settings")
		if change != nil {
			change(made)
		}
		return made
	}
	labelled := func(value string) *unstructured.Unstructured {
		return object(func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"app": value}) })
	}
	tests := map[string]struct {
		before, after *unstructured.Unstructured
		want          []string
	}{
		"a created object":             {nil, object(nil), []string{"by-name"}},
		"a deleted object":             {object(nil), nil, []string{"by-name"}},
		"a changed object":             {object(nil), object(func(o *unstructured.Unstructured) { o.Object["data"] = "x" }), []string{"by-name"}},
		"not its status":               {object(nil), object(func(o *unstructured.Unstructured) { o.Object["status"] = "x" }), nil},
		"labels that match":            {object(nil), labelled("web"), []string{"by-label", "by-name"}},
		"labels that matched":          {labelled("web"), labelled("other"), []string{"by-label", "by-name"}},
		"one in another namespace":     {nil, object(func(o *unstructured.Unstructured) { o.SetNamespace("platform") }), []string{"other-namespace"}},
		"an object without dependents": {nil, object(func(o *unstructured.Unstructured) { o.SetName("other") }), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			elsewhere := referenceTo("ConfigMap", "settings")
			elsewhere.Namespace = "platform"
			w.referenceIndex.put(bindingKey("by-name"), []dependency.Reference{referenceTo("ConfigMap", "settings")})
			w.referenceIndex.put(bindingKey("by-label"), []dependency.Reference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", LabelSelector: selector("app", "web")}})
			w.referenceIndex.put(bindingKey("other-namespace"), []dependency.Reference{elsewhere})
			handle := w.watches.newDependencyHandler(configMaps)
			switch {
			case tc.before == nil:
				handle.OnAdd(tc.after, false)
			case tc.after == nil:
				handle.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: tc.before})
			default:
				handle.OnUpdate(tc.before, tc.after)
			}
			expectEqual(t, "queued", w.takeQueue(), tc.want...)
		})
	}
}

func TestKindsAreWatchedWhileNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		manager := watches.NewManager(t.Context())
		var serves atomic.Bool
		manager.Connect(watches.ControlPlane, watchestest.NewServer(w.store, func(kind schema.GroupVersionKind) bool { return serves.Load() && kind == configMaps }))
		w.watches = newDependencyWatches(manager, w.referenceIndex, logr.Discard())
		w.watches.setQueue(w.queue)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.watches.run(ctx) }()
		object := newObject(configMaps)
		object.SetNamespace("shop")
		object.SetName("settings")
		if err := w.store.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		w.referenceIndex.put(bindingKey("web"), []dependency.Reference{referenceTo("ConfigMap", "settings"), {APIVersion: "example.io/v1", Kind: "Widget", Namespace: "shop", Name: "w"}})

		w.watches.requestUpdate()
		<-time.After(time.Minute)
		expectEqual(t, "queued while the kind is not served", w.takeQueue())
		serves.Store(true)
		<-time.After(time.Minute)
		expectEqual(t, "queued when the kind is served", w.takeQueue(), "web")

		w.referenceIndex.put(bindingKey("web"), nil)
		w.watches.requestUpdate()
		synctest.Wait()
		if _, isWatched := manager.Find(watches.ControlPlane, watches.Query{Kind: configMaps}); isWatched {
			t.Error("a kind is watched that no dependent needs")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}
