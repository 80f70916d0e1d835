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

// refusing is a store that takes no write of some objects.
type refusing struct {
	client.Client
	names string
}

func (r refusing) refuses(object client.Object) error {
	if strings.Contains(r.names, object.GetName()) {
		return errors.New("refused: " + object.GetName())
	}
	return nil
}

func (r refusing) Create(ctx context.Context, object client.Object, o ...client.CreateOption) error {
	if err := r.refuses(object); err != nil {
		return err
	}
	return r.Client.Create(ctx, object, o...)
}

func (r refusing) Delete(ctx context.Context, object client.Object, o ...client.DeleteOption) error {
	if err := r.refuses(object); err != nil {
		return err
	}
	return r.Client.Delete(ctx, object, o...)
}

// fail runs a pass that does not succeed and returns what it wrote.
func (w *world) fail(name string) (writes []string) {
	w.t.Helper()
	w.writes = nil
	if _, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: named(name)}); err == nil {
		w.t.Errorf("a pass over %s that was refused something ended well", name)
	}
	return w.writes
}

func config(name string) client.Object {
	made := settings()
	made.Name, made.UID = name, types.UID("uid-"+name)
	return made
}

func TestWhatFailsDoesNotStopTheOthers(t *testing.T) {
	const first, last = "a-configmap", "z-configmap"
	start := func(t *testing.T) *world {
		w := newWorld(t, deployment("web"), dependent("web"), config("a"), config("z"))
		w.needed = []dependency.Reference{refersTo("ConfigMap", "a"), refersTo("ConfigMap", "z")}
		return w
	}
	t.Run("to be attached", func(t *testing.T) {
		w := start(t)
		w.karmada = refusing{w.store, first}
		expect(t, "writes", w.fail("web-deployment"), "patch web-deployment", "create "+last)
	})
	t.Run("to be released, nor the dependent go before all are", func(t *testing.T) {
		w := start(t)
		w.pass("web-deployment")
		w.edit("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })
		w.karmada = refusing{w.store, first}
		expect(t, "writes", w.fail("web-deployment"), "delete "+last)
		w.karmada = w.store
		_, writes, _ := w.pass("web-deployment")
		expect(t, "writes afterwards", writes, "delete "+first, "patch web-deployment")
	})
	t.Run("to be exchanged", func(t *testing.T) {
		w := start(t)
		w.pass("web-deployment")
		if err := w.store.Create(t.Context(), config("m")); err != nil {
			t.Fatal(err)
		}
		w.needed = []dependency.Reference{refersTo("ConfigMap", "m")}
		w.karmada = refusing{w.store, first}
		expect(t, "writes", w.fail("web-deployment"), "patch web-deployment", "delete "+last, "create m-configmap")
	})
}

func TestWhatIsAttachedLeavesTheClustersWithItsDependent(t *testing.T) {
	w := attached(t)
	w.edit("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil })
	_, writes, _ := w.pass("web-deployment")
	expect(t, "writes", writes, "patch settings-configmap")
	if required := w.binding("settings-configmap").Spec.RequiredBy; len(required) != 1 || len(required[0].Clusters) != 0 {
		t.Errorf("required by %+v", required)
	}
}

func TestADependentThatIsGoneIsTakenOffByTheNext(t *testing.T) {
	w := attached(t, deployment("api"), dependent("api"))
	w.edit("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil })
	if err := w.store.Delete(t.Context(), w.binding("web-deployment")); err != nil {
		t.Fatal(err)
	}
	w.pass("api-deployment")
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

// leaving deletes an object that something holds.
func leaving(w *world, object client.Object, name string) {
	w.t.Helper()
	if err := w.store.Get(w.t.Context(), named(name), object); err != nil {
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

func TestABindingThatLeavesIsAwaited(t *testing.T) {
	w := attached(t, deployment("api"), dependent("api"))
	leaving(w, &workv1alpha2.ResourceBinding{}, "settings-configmap")
	result, writes, events := w.pass("api-deployment")
	expect(t, "writes", writes, "patch api-deployment")
	expect(t, "events", events, "Normal GetDependenciesSucceed Found 1 dependencies")
	if result.RequeueAfter != patience {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
	w.edit("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil })
	if err := w.store.Delete(t.Context(), w.binding("web-deployment")); err != nil {
		t.Fatal(err)
	}
	_, writes, _ = w.pass("web-deployment")
	expect(t, "writes to release it", writes)
}

func TestABindingGoesWithAnObjectThatLeaves(t *testing.T) {
	w := attached(t, deployment("api"), dependent("api"))
	leaving(w, settings(), "settings")
	result, writes, _ := w.pass("api-deployment")
	expect(t, "writes", writes, "patch api-deployment")
	if result.RequeueAfter != 0 {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
}

// late does not see the labels of a ConfigMap at the first look.
type late struct {
	client.Client
	looks *int
}

func (l late) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	err := l.Client.Get(ctx, key, object, o...)
	if object.GetObjectKind().GroupVersionKind().Kind == "ConfigMap" {
		if *l.looks++; *l.looks == 1 {
			object.SetLabels(nil)
		}
	}
	return err
}

func TestASelectedObjectIsKeptUntilItsLabelsAreGoneForSure(t *testing.T) {
	object := settings()
	object.Labels = map[string]string{"app": "web"}
	w := newWorld(t, deployment("web"), dependent("web"), object)
	w.needed = []dependency.Reference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", LabelSelector: selector("app", "web")}}
	w.pass("web-deployment")
	looks := 0
	w.templates = template.NewReader(nil, late{w.store, &looks})
	_, writes, _ := w.pass("web-deployment")
	expect(t, "writes", writes)
	if looks != 2 {
		t.Errorf("the object was looked at %d times", looks)
	}
}

func TestDependentsOfWhatAPolicyPlacesDoNotQuarrel(t *testing.T) {
	w := attached(t, deployment("api"), dependent("api"))
	w.edit("settings-configmap", func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = &policyv1alpha1.Placement{} })
	w.edit("api-deployment", func(b *workv1alpha2.ResourceBinding) {
		b.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	})
	_, _, events := w.pass("api-deployment")
	expect(t, "events", events, "Normal GetDependenciesSucceed Found 1 dependencies",
		"Normal SyncScheduleResultToDependenciesSucceed The dependencies follow the object to its clusters")
	if got := w.binding("settings-configmap").Spec.ConflictResolution; got != policyv1alpha1.ConflictAbort {
		t.Errorf("conflict resolution %s", got)
	}
}

func TestABindingThatSomebodyMadeElsewhereIsLetGo(t *testing.T) {
	w := attached(t)
	copied := w.binding("settings-configmap")
	copied.Name, copied.UID, copied.ResourceVersion = "copied", "", ""
	if err := w.store.Create(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	_, writes, _ := w.pass("web-deployment")
	expect(t, "writes", writes, "delete copied")
}
