package dependencies

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
)

// rejectingClient rejects writes of some objects.
type rejectingClient struct {
	client.Client
	names string
}

func (r rejectingClient) rejects(object client.Object) error {
	if strings.Contains(r.names, object.GetName()) {
		return errors.New("rejected: " + object.GetName())
	}
	return nil
}

func (r rejectingClient) Create(ctx context.Context, object client.Object, o ...client.CreateOption) error {
	if err := r.rejects(object); err != nil {
		return err
	}
	return r.Client.Create(ctx, object, o...)
}

func (r rejectingClient) Delete(ctx context.Context, object client.Object, o ...client.DeleteOption) error {
	if err := r.rejects(object); err != nil {
		return err
	}
	return r.Client.Delete(ctx, object, o...)
}

// reconcileWithError runs a reconcile that must fail and returns its writes.
func (f *fixture) reconcileWithError(name string) (writes []string) {
	f.t.Helper()
	f.writes = nil
	if _, err := f.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: bindingKey(name)}); err == nil {
		f.t.Errorf("the reconcile of %s did not fail", name)
	}
	return f.writes
}

func configMap(name string) client.Object {
	made := settingsConfigMap()
	made.Name, made.UID = name, types.UID("uid-"+name)
	return made
}

func TestFailureDoesNotStopOtherObjects(t *testing.T) {
	const first, last = "a-configmap", "z-configmap"
	start := func(t *testing.T) *fixture {
		w := newFixture(t, deployment("web"), dependent("web"), configMap("a"), configMap("z"))
		w.references = []dependency.Reference{referenceTo("ConfigMap", "a"), referenceTo("ConfigMap", "z")}
		return w
	}
	t.Run("attach", func(t *testing.T) {
		w := start(t)
		w.karmada = rejectingClient{w.store, first}
		expectEqual(t, "writes", w.reconcileWithError("web-deployment"), "patch web-deployment", "create "+last)
	})
	t.Run("detach, and the finalizer stays until all are detached", func(t *testing.T) {
		w := start(t)
		w.reconcile("web-deployment")
		w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })
		w.karmada = rejectingClient{w.store, first}
		expectEqual(t, "writes", w.reconcileWithError("web-deployment"), "delete "+last)
		w.karmada = w.store
		_, writes, _ := w.reconcile("web-deployment")
		expectEqual(t, "writes afterwards", writes, "delete "+first, "patch web-deployment")
	})
	t.Run("attach and detach", func(t *testing.T) {
		w := start(t)
		w.reconcile("web-deployment")
		if err := w.store.Create(t.Context(), configMap("m")); err != nil {
			t.Fatal(err)
		}
		w.references = []dependency.Reference{referenceTo("ConfigMap", "m")}
		w.karmada = rejectingClient{w.store, first}
		expectEqual(t, "writes", w.reconcileWithError("web-deployment"), "patch web-deployment", "delete "+last, "create m-configmap")
	})
}

func TestAttachedBindingFollowsClustersOfDependent(t *testing.T) {
	w := newAttachedFixture(t)
	w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil })
	_, writes, _ := w.reconcile("web-deployment")
	expectEqual(t, "writes", writes, "patch settings-configmap")
	if required := w.binding("settings-configmap").Spec.RequiredBy; len(required) != 1 || len(required[0].Clusters) != 0 {
		t.Errorf("required by %+v", required)
	}
}

func TestDeletedDependentIsDetachedByOtherDependent(t *testing.T) {
	w := newAttachedFixture(t, deployment("api"), dependent("api"))
	w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil })
	if err := w.store.Delete(t.Context(), w.binding("web-deployment")); err != nil {
		t.Fatal(err)
	}
	w.reconcile("api-deployment")
	bound := w.binding("settings-configmap")
	if required := bound.Spec.RequiredBy; len(required) != 1 || required[0].Name != "api-deployment" {
		t.Errorf("required by %+v", required)
	}
	if bound.Labels[labelOf("web-deployment")] != "" || bound.Labels[labelOf("api-deployment")] != "id-api" {
		t.Errorf("labels %v", bound.Labels)
	}
}

func labelOf(name string) string {
	return workv1alpha2.DependedByLabelPrefix + binding.ReferenceKey("shop", name)
}

// deleteWithFinalizer deletes an object that has a finalizer.
func deleteWithFinalizer(w *fixture, object client.Object, name string) {
	w.t.Helper()
	if err := w.store.Get(w.t.Context(), bindingKey(name), object); err != nil {
		w.t.Fatal(err)
	}
	object.SetFinalizers(append(object.GetFinalizers(), "example.io/wait"))
	if err := w.store.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
	if err := w.store.Delete(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

func TestTerminatingBindingIsAwaited(t *testing.T) {
	w := newAttachedFixture(t, deployment("api"), dependent("api"))
	deleteWithFinalizer(w, &workv1alpha2.ResourceBinding{}, "settings-configmap")
	result, writes, events := w.reconcile("api-deployment")
	expectEqual(t, "writes", writes, "patch api-deployment")
	expectEqual(t, "events", events, "Normal GetDependenciesSucceed Found 1 dependencies")
	if result.RequeueAfter != blockedRetryDelay {
		t.Errorf("requeued after %s", result.RequeueAfter)
	}
	w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil })
	if err := w.store.Delete(t.Context(), w.binding("web-deployment")); err != nil {
		t.Fatal(err)
	}
	_, writes, _ = w.reconcile("web-deployment")
	expectEqual(t, "writes to detach it", writes)
}

func TestTerminatingObjectIsNotAttached(t *testing.T) {
	w := newAttachedFixture(t, deployment("api"), dependent("api"))
	deleteWithFinalizer(w, settingsConfigMap(), "settings")
	result, writes, _ := w.reconcile("api-deployment")
	expectEqual(t, "writes", writes, "patch api-deployment")
	if result.RequeueAfter != 0 {
		t.Errorf("requeued after %s", result.RequeueAfter)
	}
}

// lateLabelsClient returns a ConfigMap without labels for the first read.
type lateLabelsClient struct {
	client.Client
	reads *int
}

func (l lateLabelsClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	err := l.Client.Get(ctx, key, object, o...)
	if object.GetObjectKind().GroupVersionKind().Kind == "ConfigMap" {
		if *l.reads++; *l.reads == 1 {
			object.SetLabels(nil)
		}
	}
	return err
}

func TestSelectedDependencyIsKeptUntilServerConfirmsLabels(t *testing.T) {
	object := settingsConfigMap()
	object.Labels = map[string]string{"app": "web"}
	w := newFixture(t, deployment("web"), dependent("web"), object)
	w.references = []dependency.Reference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", LabelSelector: selector("app", "web")}}
	w.reconcile("web-deployment")
	reads := 0
	w.templateReader = template.NewReader(nil, lateLabelsClient{w.store, &reads})
	_, writes, _ := w.reconcile("web-deployment")
	expectEqual(t, "writes", writes)
	if reads != 2 {
		t.Errorf("the object was read %d times", reads)
	}
}

func TestNoConflictForBindingWithPolicy(t *testing.T) {
	w := newAttachedFixture(t, deployment("api"), dependent("api"))
	w.updateBinding("settings-configmap", func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = &policyv1alpha1.Placement{} })
	w.updateBinding("api-deployment", func(b *workv1alpha2.ResourceBinding) {
		b.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	})
	_, _, events := w.reconcile("api-deployment")
	expectEqual(t, "events", events, "Normal GetDependenciesSucceed Found 1 dependencies",
		"Normal SyncScheduleResultToDependenciesSucceed The dependencies follow the object to its clusters")
	if got := w.binding("settings-configmap").Spec.ConflictResolution; got != policyv1alpha1.ConflictAbort {
		t.Errorf("conflict resolution %s", got)
	}
}

func TestBindingWithOtherNameIsDetached(t *testing.T) {
	w := newAttachedFixture(t)
	copied := w.binding("settings-configmap")
	copied.Name, copied.UID, copied.ResourceVersion = "copied", "", ""
	if err := w.store.Create(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	_, writes, _ := w.reconcile("web-deployment")
	expectEqual(t, "writes", writes, "delete copied")
}
