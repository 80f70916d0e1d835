package dependencies

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
)

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// attached makes a world in which the settings follow web.
func attached(t *testing.T, others ...client.Object) *world {
	t.Helper()
	w := newWorld(t, append(others, deployment("web"), dependent("web"), settings())...)
	_, writes, _ := w.pass("web-deployment")
	expect(t, "writes of the first pass", writes, "patch web-deployment", "create settings-configmap")
	return w
}

func TestADependencyCostsOneWriteAndNoneAfterwards(t *testing.T) {
	w := newWorld(t, deployment("web"), dependent("web"), settings())
	_, writes, events := w.pass("web-deployment")
	expect(t, "writes", writes, "patch web-deployment", "create settings-configmap")
	expect(t, "events", events, "Normal GetDependenciesSucceed Found 1 dependencies",
		"Normal SyncScheduleResultToDependenciesSucceed The dependencies follow the object to its clusters")
	bound := w.binding("web-deployment")
	expect(t, "finalizers", bound.Finalizers, "karmada.io/binding-dependencies-distributor")
	const note = `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"settings"}]`
	if got := bound.Annotations["resourcebinding.karmada.io/dependencies"]; got != note {
		t.Errorf("note %s", got)
	}
	if w.binding("settings-configmap").Labels[workv1alpha2.ResourceBindingPermanentIDLabel] == "" {
		t.Error("the new binding has no id")
	}
	_, writes, events = w.pass("web-deployment")
	expect(t, "writes of a second pass", writes)
	expect(t, "events of a second pass", events)
	// A process that starts knows nothing.
	w.needs, w.quarrels = newNeeds(), newQuarrels()
	_, writes, events = w.pass("web-deployment")
	expect(t, "writes after a restart", writes)
	expect(t, "events after a restart", events)
}

func TestWhatIsReleased(t *testing.T) {
	claim := policy.Claim{Namespace: "shop", Name: "p", ID: "id-p"}
	off := func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false }
	tests := map[string]struct {
		attached func(*workv1alpha2.ResourceBinding)
		change   func(*world)
		want     []string
	}{
		"nothing as long as nothing changes": {nil, func(*world) {}, nil},
		"everything when dependencies stay at home": {nil, func(w *world) { w.edit("web-deployment", off) },
			[]string{"delete settings-configmap", "patch web-deployment"}},
		"everything when nothing is needed any more": {nil, func(w *world) { w.needed = nil },
			[]string{"delete settings-configmap", "patch web-deployment"}},
		"what is needed no longer": {nil, func(w *world) { w.needed = []dependency.Reference{refersTo("Secret", "keys")} },
			[]string{"patch web-deployment", "delete settings-configmap"}},
		"but a binding of a policy stays": {
			func(b *workv1alpha2.ResourceBinding) { claim.Apply(b); b.Spec.Placement = &policyv1alpha1.Placement{} },
			func(w *world) { w.edit("web-deployment", off) }, []string{"patch settings-configmap", "patch web-deployment"},
		},
		"and one that a policy has left": {
			func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement, b.Spec.Clusters = &policyv1alpha1.Placement{}, []workv1alpha2.TargetCluster{{Name: "m2"}}
			},
			func(w *world) { w.edit("web-deployment", off) }, []string{"patch settings-configmap", "patch web-deployment"},
		},
		"everything when the dependent goes": {nil, func(w *world) {
			if err := w.store.Delete(w.t.Context(), w.binding("web-deployment")); err != nil {
				w.t.Fatal(err)
			}
		}, []string{"delete settings-configmap", "patch web-deployment"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := attached(t)
			if tc.attached != nil {
				w.edit("settings-configmap", tc.attached)
			}
			tc.change(w)
			_, writes, _ := w.pass("web-deployment")
			expect(t, "writes", writes, tc.want...)
		})
	}
}

func TestADependentThatWentWithoutWaitingLeavesNothing(t *testing.T) {
	w := attached(t)
	w.edit("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil })
	if err := w.store.Delete(t.Context(), w.binding("web-deployment")); err != nil {
		t.Fatal(err)
	}
	_, writes, _ := w.pass("web-deployment")
	expect(t, "writes", writes, "delete settings-configmap")
}

func TestADependentThatOnlyTheCacheMissesKeepsAll(t *testing.T) {
	w := attached(t)
	// What the server has is seen nowhere else.
	server := newWorld(t, dependent("web"))
	w.live = server.store
	w.edit("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil })
	if err := w.store.Delete(t.Context(), w.binding("web-deployment")); err != nil {
		t.Fatal(err)
	}
	result, writes, _ := w.pass("web-deployment")
	expect(t, "writes", writes)
	if result.RequeueAfter != glance {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
}

func TestDependentsShareOneBinding(t *testing.T) {
	w := attached(t, deployment("api"), dependent("api"))
	w.edit("api-deployment", func(b *workv1alpha2.ResourceBinding) {
		b.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m2"}}
	})
	_, writes, events := w.pass("api-deployment")
	expect(t, "writes", writes, "patch api-deployment", "patch settings-configmap")
	const quarrel = "Warning DependencyPolicyConflict the bindings that require this one differ: " +
		"ConflictResolution conflicted (Overwrite vs Abort): Overwrite for shop/api-deployment, Abort for shop/web-deployment; Overwrite is used"
	if len(events) != 3 || events[1] != quarrel {
		t.Errorf("events %q", events)
	}
	if got := w.binding("settings-configmap").Spec.ConflictResolution; got != policyv1alpha1.ConflictOverwrite {
		t.Errorf("conflict resolution %s", got)
	}
	for _, name := range []string{"web-deployment", "api-deployment"} {
		_, writes, events = w.pass(name)
		expect(t, "writes of another pass", writes)
		expect(t, "events of another pass", events)
	}
	w.quarrels = newQuarrels()
	_, _, events = w.pass("web-deployment")
	expect(t, "events after a restart", events)

	w.edit("api-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })
	_, writes, _ = w.pass("api-deployment")
	expect(t, "writes when one goes", writes, "patch settings-configmap", "patch api-deployment")
	if got := w.binding("settings-configmap").Spec; got.ConflictResolution != policyv1alpha1.ConflictAbort || len(got.RequiredBy) != 1 {
		t.Errorf("what is left: %+v", got)
	}
}

func TestObjectsThatCannotBeAttached(t *testing.T) {
	tests := map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		after  time.Duration
		told   bool
	}{
		"its binding is still that of an earlier object": {func(b *workv1alpha2.ResourceBinding) { b.OwnerReferences[0].UID = "earlier" }, patience, false},
		"its binding is of another kind": {func(b *workv1alpha2.ResourceBinding) {
			b.OwnerReferences[0].UID, b.Spec.Resource.APIVersion = "other", "example.io/v1"
		}, obstructed, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := attached(t, deployment("api"), dependent("api"))
			w.edit("settings-configmap", tc.change)
			result, writes, events := w.pass("api-deployment")
			expect(t, "writes", writes, "patch api-deployment")
			if result.RequeueAfter != tc.after {
				t.Errorf("looks again after %s, want %s", result.RequeueAfter, tc.after)
			}
			told := len(events) > 0 && strings.HasPrefix(events[len(events)-1], "Warning SyncScheduleResultToDependenciesFailed")
			if told != tc.told {
				t.Errorf("events %q", events)
			}
			_, _, events = w.pass("api-deployment")
			expect(t, "events the second time", events)
		})
	}
}

func TestWhatIsNotAttached(t *testing.T) {
	leaving := settings()
	leaving.Finalizers = []string{"example.io/wait"}
	nowhere := dependent("web")
	nowhere.Spec.Clusters = nil
	role := refersTo("ClusterRole", "view")
	role.APIVersion = "rbac.authorization.k8s.io/v1"
	tests := map[string]struct {
		objects []client.Object
		needed  dependency.Reference
		want    []string
	}{
		"an object that is not there":               {[]client.Object{dependent("web")}, refersTo("ConfigMap", "settings"), []string{"patch web-deployment"}},
		"one of a kind that is not served":          {[]client.Object{dependent("web")}, dependency.Reference{APIVersion: "example.io/v1", Kind: "Widget", Namespace: "shop", Name: "w"}, []string{"patch web-deployment"}},
		"one without a namespace, named with one":   {[]client.Object{dependent("web"), clusterRole("view")}, role, []string{"patch web-deployment"}},
		"anything before there are clusters for it": {[]client.Object{nowhere, settings()}, refersTo("ConfigMap", "settings"), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.objects, deployment("web"))...)
			w.needed = []dependency.Reference{tc.needed}
			_, writes, _ := w.pass("web-deployment")
			expect(t, "writes", writes, tc.want...)
		})
	}
	t.Run("an object that is being deleted", func(t *testing.T) {
		w := newWorld(t, deployment("web"), dependent("web"), leaving)
		if err := w.store.Delete(t.Context(), leaving); err != nil {
			t.Fatal(err)
		}
		_, writes, _ := w.pass("web-deployment")
		expect(t, "writes", writes, "patch web-deployment")
	})
}

func TestATenantTakesAlongOnlyWhatIsInTheNamespace(t *testing.T) {
	elsewhere := settings()
	elsewhere.Namespace = "bank"
	refused := map[string]dependency.Reference{
		"an object of another namespace": {APIVersion: "v1", Kind: "ConfigMap", Namespace: "bank", Name: "settings"},
		"objects of another namespace":   {APIVersion: "v1", Kind: "ConfigMap", Namespace: "bank", LabelSelector: &metav1.LabelSelector{}},
		"an object without a namespace":  {APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "view"},
		"the credentials of a cluster":   refersTo("Secret", "east"),
		"an object of the control plane": {APIVersion: "policy.karmada.io/v1alpha1", Kind: "OverridePolicy", Namespace: "shop", Name: "p"},
	}
	for name, reference := range refused {
		t.Run(name, func(t *testing.T) {
			policy := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
			credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "east", Labels: map[string]string{"karmada.io/system": "true"}}}
			w := newWorld(t, deployment("web"), dependent("web"), clusterRole("view"), elsewhere.DeepCopy(), settings(), policy, credentials)
			w.needed = []dependency.Reference{reference, refersTo("ConfigMap", "settings")}
			result, writes, events := w.pass("web-deployment")
			expect(t, "writes", writes, "patch web-deployment", "create settings-configmap")
			if result.RequeueAfter != obstructed || len(events) != 2 || !strings.Contains(events[1], "SyncScheduleResultToDependenciesFailed") && !strings.Contains(events[0], "SyncScheduleResultToDependenciesFailed") {
				t.Errorf("looked at again after %s, events %v", result.RequeueAfter, events)
			}
		})
	}
}

func TestWhatFollowedBeforeIsNotReleasedForBeingOutOfReach(t *testing.T) {
	claimed := dependent("web")
	claimed.Labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] = "everything"
	w := newWorld(t, deployment("web"), claimed, clusterRole("view"))
	w.needed = []dependency.Reference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "view"}}
	w.pass("web-deployment")
	w.edit("web-deployment", func(b *workv1alpha2.ResourceBinding) {
		delete(b.Labels, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel)
	})
	_, writes, _ := w.pass("web-deployment")
	expect(t, "writes", writes)
}

func TestObjectsWithoutNamespaceShareABindingWithoutNamespace(t *testing.T) {
	claimed := dependent("web")
	claimed.Labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] = "everything"
	w := newWorld(t, deployment("web"), claimed, clusterRole("view"))
	w.needed = []dependency.Reference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "view"}}
	_, writes, _ := w.pass("web-deployment")
	expect(t, "writes", writes, "patch web-deployment", "create view-clusterrole")
	made := &workv1alpha2.ClusterResourceBinding{}
	if err := w.store.Get(t.Context(), client.ObjectKey{Name: "view-clusterrole"}, made); err != nil {
		t.Fatal(err)
	}
	if !dependency.Requires(made, named("web-deployment")) {
		t.Errorf("required by %+v", made.Spec.RequiredBy)
	}
	w.edit("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })
	_, writes, _ = w.pass("web-deployment")
	expect(t, "writes when it is switched off", writes, "delete view-clusterrole", "patch web-deployment")
}

func TestSelectedObjectsComeAndGoWithTheirLabels(t *testing.T) {
	w := newWorld(t, deployment("web"), dependent("web"), settings())
	w.needed = []dependency.Reference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop"}}
	w.needed[0].LabelSelector = selector("app", "web")
	label := func(value string) {
		object := settings()
		if err := w.store.Get(t.Context(), named("settings"), object); err != nil {
			t.Fatal(err)
		}
		object.Labels = map[string]string{"app": value}
		if err := w.store.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	_, writes, _ := w.pass("web-deployment")
	expect(t, "writes before it is selected", writes, "patch web-deployment")
	label("web")
	_, writes, _ = w.pass("web-deployment")
	expect(t, "writes when it is", writes, "create settings-configmap")
	label("other")
	_, writes, _ = w.pass("web-deployment")
	expect(t, "writes when it is no longer", writes, "delete settings-configmap")
}

// unserved is a store that does not serve ConfigMaps at the moment.
type unserved struct{ client.Client }

func (u unserved) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	if kind := object.GetObjectKind().GroupVersionKind().GroupKind(); kind.Kind == "ConfigMap" {
		return &meta.NoKindMatchError{GroupKind: kind}
	}
	return u.Client.Get(ctx, key, object, o...)
}

func (u unserved) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	if kind := list.GetObjectKind().GroupVersionKind().GroupKind(); kind.Kind == "ConfigMapList" {
		return &meta.NoKindMatchError{GroupKind: kind}
	}
	return u.Client.List(ctx, list, o...)
}

func TestASelectedObjectIsKeptWhileItsKindIsNotServed(t *testing.T) {
	w := newWorld(t, deployment("web"), dependent("web"), settings())
	w.needed = []dependency.Reference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", LabelSelector: selector("app", "web")}}
	object := settings()
	if err := w.store.Get(t.Context(), named("settings"), object); err != nil {
		t.Fatal(err)
	}
	object.Labels = map[string]string{"app": "web"}
	if err := w.store.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	w.pass("web-deployment")
	w.templates = template.NewReader(nil, unserved{w.store})
	_, writes, _ := w.pass("web-deployment")
	expect(t, "writes", writes)
}

type broken struct{ err error }

func (b broken) Rules(_ schema.GroupVersionKind) interpreter.Rules {
	return interpreter.Rules{Dependencies: func(context.Context, *unstructured.Unstructured) ([]dependency.Reference, error) { return nil, b.err }}
}

func TestWhatCannotBeInterpretedStaysAsItIs(t *testing.T) {
	w := attached(t)
	w.rules = broken{errors.New("the script has a mistake")}
	w.writes = nil
	_, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: named("web-deployment")})
	if err == nil {
		t.Error("the failure is not retried")
	}
	expect(t, "writes", w.writes)
	if event := <-w.recorder.Events; event != "Warning GetDependenciesFailed interpreting what Deployment shop/web needs: the script has a mistake" {
		t.Errorf("event %q", event)
	}
}

func TestATemplateThatIsGoneStopsQuietly(t *testing.T) {
	w := attached(t)
	if err := w.store.Delete(t.Context(), deployment("web")); err != nil {
		t.Fatal(err)
	}
	_, writes, events := w.pass("web-deployment")
	expect(t, "writes", writes)
	expect(t, "events", events)
}

func TestATemplateThatIsBehindIsAwaited(t *testing.T) {
	w := newWorld(t, deployment("web"), dependent("web"), settings())
	w.edit("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.ResourceVersion = "123456" })
	result, writes, events := w.pass("web-deployment")
	expect(t, "writes", writes)
	expect(t, "events", events)
	if result.RequeueAfter != glance {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
}
