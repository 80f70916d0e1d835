package dependencies

import (
	"context"
	"errors"
	"strings"
	"testing"

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
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

func expectEqual(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// newAttachedFixture returns a fixture in which the binding of settings is attached to web.
func newAttachedFixture(t *testing.T, others ...client.Object) *fixture {
	t.Helper()
	w := newFixture(t, append(others, deployment("web"), dependent("web"), settingsConfigMap())...)
	_, writes, _ := w.reconcile("web-deployment")
	expectEqual(t, "writes of the first reconcile", writes, "patch web-deployment", "create settings-configmap")
	return w
}

func TestAttachNewDependency(t *testing.T) {
	w := newFixture(t, deployment("web"), dependent("web"), settingsConfigMap())
	_, writes, events := w.reconcile("web-deployment")
	expectEqual(t, "writes", writes, "patch web-deployment", "create settings-configmap")
	expectEqual(t, "events", events, "Normal GetDependenciesSucceed Found 1 dependencies",
		"Normal SyncScheduleResultToDependenciesSucceed The dependencies follow the object to its clusters")
	bound := w.binding("web-deployment")
	expectEqual(t, "finalizers", bound.Finalizers, "karmada.io/binding-dependencies-distributor")
	const annotation = `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"settings"}]`
	if got := bound.Annotations["resourcebinding.karmada.io/dependencies"]; got != annotation {
		t.Errorf("annotation %s", got)
	}
	if w.binding("settings-configmap").Labels[workv1alpha2.ResourceBindingPermanentIDLabel] == "" {
		t.Error("the new binding has no id")
	}
	_, writes, events = w.reconcile("web-deployment")
	expectEqual(t, "writes of a second reconcile", writes)
	expectEqual(t, "events of a second reconcile", events)
	// A new process has empty trackers.
	w.referenceIndex, w.conflicts = newReferenceIndex(), newConflicts()
	_, writes, events = w.reconcile("web-deployment")
	expectEqual(t, "writes after a restart", writes)
	expectEqual(t, "events after a restart", events)
}

func TestDetach(t *testing.T) {
	claim := policy.Claim{Namespace: "shop", Name: "p", ID: "id-p"}
	off := func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false }
	tests := map[string]struct {
		attached func(*workv1alpha2.ResourceBinding)
		change   func(*fixture)
		want     []string
	}{
		"nothing without a change": {nil, func(*fixture) {}, nil},
		"everything when propagateDeps is off": {nil, func(w *fixture) { w.updateBinding("web-deployment", off) },
			[]string{"delete settings-configmap", "patch web-deployment"}},
		"everything without references": {nil, func(w *fixture) { w.references = nil },
			[]string{"delete settings-configmap", "patch web-deployment"}},
		"objects without a reference": {nil, func(w *fixture) { w.references = []dependency.Reference{referenceTo("Secret", "keys")} },
			[]string{"patch web-deployment", "delete settings-configmap"}},
		"a binding of a policy stays": {
			func(b *workv1alpha2.ResourceBinding) { claim.Apply(b); b.Spec.Placement = &policyv1alpha1.Placement{} },
			func(w *fixture) { w.updateBinding("web-deployment", off) }, []string{"patch settings-configmap", "patch web-deployment"},
		},
		"a binding with placement but without a policy stays": {
			func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement, b.Spec.Clusters = &policyv1alpha1.Placement{}, []workv1alpha2.TargetCluster{{Name: "m2"}}
			},
			func(w *fixture) { w.updateBinding("web-deployment", off) }, []string{"patch settings-configmap", "patch web-deployment"},
		},
		"everything when the dependent is deleted": {nil, func(w *fixture) {
			if err := w.store.Delete(w.t.Context(), w.binding("web-deployment")); err != nil {
				w.t.Fatal(err)
			}
		}, []string{"delete settings-configmap", "patch web-deployment"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newAttachedFixture(t)
			if tc.attached != nil {
				w.updateBinding("settings-configmap", tc.attached)
			}
			tc.change(w)
			_, writes, _ := w.reconcile("web-deployment")
			expectEqual(t, "writes", writes, tc.want...)
		})
	}
}

func TestDeletedDependentWithoutFinalizerIsDetached(t *testing.T) {
	w := newAttachedFixture(t)
	w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil })
	if err := w.store.Delete(t.Context(), w.binding("web-deployment")); err != nil {
		t.Fatal(err)
	}
	_, writes, _ := w.reconcile("web-deployment")
	expectEqual(t, "writes", writes, "delete settings-configmap")
}

func TestDependentMissingOnlyInCacheIsNotDetached(t *testing.T) {
	w := newAttachedFixture(t)
	// The API server contains the dependent, but the cache does not.
	server := newFixture(t, dependent("web"))
	w.karmadaReader = server.store
	w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil })
	if err := w.store.Delete(t.Context(), w.binding("web-deployment")); err != nil {
		t.Fatal(err)
	}
	result, writes, _ := w.reconcile("web-deployment")
	expectEqual(t, "writes", writes)
	if result != loop.StaleResult() {
		t.Errorf("result %v, want a retry with backoff", result)
	}
}

func TestDependentsShareOneBinding(t *testing.T) {
	w := newAttachedFixture(t, deployment("api"), dependent("api"))
	w.updateBinding("api-deployment", func(b *workv1alpha2.ResourceBinding) {
		b.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m2"}}
	})
	_, writes, events := w.reconcile("api-deployment")
	expectEqual(t, "writes", writes, "patch api-deployment", "patch settings-configmap")
	const conflict = "Warning DependencyPolicyConflict the bindings that require this one differ: " +
		"ConflictResolution conflicted (Overwrite vs Abort): Overwrite for shop/api-deployment, Abort for shop/web-deployment; Overwrite is used"
	if len(events) != 3 || events[1] != conflict {
		t.Errorf("events %q", events)
	}
	if got := w.binding("settings-configmap").Spec.ConflictResolution; got != policyv1alpha1.ConflictOverwrite {
		t.Errorf("conflict resolution %s", got)
	}
	for _, name := range []string{"web-deployment", "api-deployment"} {
		_, writes, events = w.reconcile(name)
		expectEqual(t, "writes of another reconcile", writes)
		expectEqual(t, "events of another reconcile", events)
	}
	w.conflicts = newConflicts()
	_, _, events = w.reconcile("web-deployment")
	expectEqual(t, "events after a restart", events)

	w.updateBinding("api-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })
	_, writes, _ = w.reconcile("api-deployment")
	expectEqual(t, "writes when one dependent is detached", writes, "patch settings-configmap", "patch api-deployment")
	if got := w.binding("settings-configmap").Spec; got.ConflictResolution != policyv1alpha1.ConflictAbort || len(got.RequiredBy) != 1 {
		t.Errorf("remaining spec: %+v", got)
	}
}

func TestObjectWithBindingOfEarlierObject(t *testing.T) {
	w := newAttachedFixture(t, deployment("api"), dependent("api"))
	w.updateBinding("settings-configmap", func(b *workv1alpha2.ResourceBinding) { b.OwnerReferences[0].UID = "earlier" })
	result, writes, events := w.reconcile("api-deployment")
	expectEqual(t, "writes", writes, "patch api-deployment")
	if result.RequeueAfter != blockedRetryDelay {
		t.Errorf("requeued after %s", result.RequeueAfter)
	}
	if len(events) > 0 && strings.HasPrefix(events[len(events)-1], "Warning") {
		t.Errorf("events %q", events)
	}
	_, _, events = w.reconcile("api-deployment")
	expectEqual(t, "events the second time", events)
}

func TestUsualBindingNameBelongsToAnotherObject(t *testing.T) {
	of := schema.GroupKind{Group: "example.io", Kind: "ConfigMap"}
	other := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: binding.Name("settings", of.Kind)}}
	other.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "example.io/v1", Kind: of.Kind, Namespace: "shop", Name: "settings"}
	w := newFixture(t, other, deployment("web"), dependent("web"), settingsConfigMap())
	second := binding.Names(schema.GroupKind{Kind: of.Kind}, "settings")[1]
	_, writes, _ := w.reconcile("web-deployment")
	expectEqual(t, "writes", writes, "patch web-deployment", "create "+second)
	_, writes, _ = w.reconcile("web-deployment")
	expectEqual(t, "writes of a second reconcile", writes)
	if len(w.binding(second).Spec.RequiredBy) != 1 || len(w.binding(other.Name).Spec.RequiredBy) != 0 {
		t.Error("the binding of the other object follows the dependent")
	}

	w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })
	_, writes, _ = w.reconcile("web-deployment")
	expectEqual(t, "writes when the dependent is detached", writes, "delete "+second, "patch web-deployment")
}

func TestObjectsThatAreNotAttached(t *testing.T) {
	terminating := settingsConfigMap()
	terminating.Finalizers = []string{"example.io/wait"}
	unscheduled := dependent("web")
	unscheduled.Spec.Clusters = nil
	role := referenceTo("ClusterRole", "view")
	role.APIVersion = "rbac.authorization.k8s.io/v1"
	tests := map[string]struct {
		objects []client.Object
		needed  dependency.Reference
		want    []string
	}{
		"a missing object":                             {[]client.Object{dependent("web")}, referenceTo("ConfigMap", "settings"), []string{"patch web-deployment"}},
		"an object of a kind that is not served":       {[]client.Object{dependent("web")}, dependency.Reference{APIVersion: "example.io/v1", Kind: "Widget", Namespace: "shop", Name: "w"}, []string{"patch web-deployment"}},
		"a cluster-scoped object with a namespace":     {[]client.Object{dependent("web"), clusterRole("view")}, role, []string{"patch web-deployment"}},
		"any object before the dependent has clusters": {[]client.Object{unscheduled, settingsConfigMap()}, referenceTo("ConfigMap", "settings"), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, append(tc.objects, deployment("web"))...)
			w.references = []dependency.Reference{tc.needed}
			_, writes, _ := w.reconcile("web-deployment")
			expectEqual(t, "writes", writes, tc.want...)
		})
	}
	t.Run("an object that is being deleted", func(t *testing.T) {
		w := newFixture(t, deployment("web"), dependent("web"), terminating)
		if err := w.store.Delete(t.Context(), terminating); err != nil {
			t.Fatal(err)
		}
		_, writes, _ := w.reconcile("web-deployment")
		expectEqual(t, "writes", writes, "patch web-deployment")
	})
}

func TestDependenciesAreLimitedToNamespace(t *testing.T) {
	elsewhere := settingsConfigMap()
	elsewhere.Namespace = "bank"
	rejected := map[string]dependency.Reference{
		"an object of another namespace": {APIVersion: "v1", Kind: "ConfigMap", Namespace: "bank", Name: "settings"},
		"objects of another namespace":   {APIVersion: "v1", Kind: "ConfigMap", Namespace: "bank", LabelSelector: &metav1.LabelSelector{}},
		"a cluster-scoped object":        {APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "view"},
		"the credentials of a cluster":   referenceTo("Secret", "east"),
		"an object of the control plane": {APIVersion: "policy.karmada.io/v1alpha1", Kind: "OverridePolicy", Namespace: "shop", Name: "p"},
	}
	for name, reference := range rejected {
		t.Run(name, func(t *testing.T) {
			policy := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
			credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "east", Labels: map[string]string{"karmada.io/system": "true"}}}
			w := newFixture(t, deployment("web"), dependent("web"), clusterRole("view"), elsewhere.DeepCopy(), settingsConfigMap(), policy, credentials)
			w.references = []dependency.Reference{reference, referenceTo("ConfigMap", "settings")}
			result, writes, events := w.reconcile("web-deployment")
			expectEqual(t, "writes", writes, "patch web-deployment", "create settings-configmap")
			if result.RequeueAfter != userRetryDelay || len(events) != 2 || !strings.Contains(events[1], "SyncScheduleResultToDependenciesFailed") && !strings.Contains(events[0], "SyncScheduleResultToDependenciesFailed") {
				t.Errorf("requeued after %s, events %v", result.RequeueAfter, events)
			}
		})
	}
}

func TestAttachedClusterScopedObjectIsNotDetached(t *testing.T) {
	claimed := dependent("web")
	claimed.Labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] = "everything"
	w := newFixture(t, deployment("web"), claimed, clusterRole("view"))
	w.references = []dependency.Reference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "view"}}
	w.reconcile("web-deployment")
	w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) {
		delete(b.Labels, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel)
	})
	_, writes, _ := w.reconcile("web-deployment")
	expectEqual(t, "writes", writes)
}

func TestClusterScopedDependency(t *testing.T) {
	claimed := dependent("web")
	claimed.Labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] = "everything"
	w := newFixture(t, deployment("web"), claimed, clusterRole("view"))
	w.references = []dependency.Reference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "view"}}
	_, writes, _ := w.reconcile("web-deployment")
	expectEqual(t, "writes", writes, "patch web-deployment", "create view-clusterrole")
	made := &workv1alpha2.ClusterResourceBinding{}
	if err := w.store.Get(t.Context(), client.ObjectKey{Name: "view-clusterrole"}, made); err != nil {
		t.Fatal(err)
	}
	if !dependency.HasDependent(made, bindingKey("web-deployment")) {
		t.Errorf("required by %+v", made.Spec.RequiredBy)
	}
	w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })
	_, writes, _ = w.reconcile("web-deployment")
	expectEqual(t, "writes when propagateDeps is off", writes, "delete view-clusterrole", "patch web-deployment")
}

func TestSelectedDependenciesFollowLabels(t *testing.T) {
	w := newFixture(t, deployment("web"), dependent("web"), settingsConfigMap())
	w.references = []dependency.Reference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop"}}
	w.references[0].LabelSelector = selector("app", "web")
	label := func(value string) {
		object := settingsConfigMap()
		if err := w.store.Get(t.Context(), bindingKey("settings"), object); err != nil {
			t.Fatal(err)
		}
		object.Labels = map[string]string{"app": value}
		if err := w.store.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	_, writes, _ := w.reconcile("web-deployment")
	expectEqual(t, "writes before it is selected", writes, "patch web-deployment")
	label("web")
	_, writes, _ = w.reconcile("web-deployment")
	expectEqual(t, "writes when it is", writes, "create settings-configmap")
	label("other")
	_, writes, _ = w.reconcile("web-deployment")
	expectEqual(t, "writes when it is no longer", writes, "delete settings-configmap")
}

// unservedConfigMaps is a client of an API server that does not serve ConfigMaps.
type unservedConfigMaps struct{ client.Client }

func (u unservedConfigMaps) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	if kind := object.GetObjectKind().GroupVersionKind().GroupKind(); kind.Kind == "ConfigMap" {
		return &meta.NoKindMatchError{GroupKind: kind}
	}
	return u.Client.Get(ctx, key, object, o...)
}

func (u unservedConfigMaps) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	if kind := list.GetObjectKind().GroupVersionKind().GroupKind(); kind.Kind == "ConfigMapList" {
		return &meta.NoKindMatchError{GroupKind: kind}
	}
	return u.Client.List(ctx, list, o...)
}

func TestSelectedDependencyIsKeptWhileKindIsNotServed(t *testing.T) {
	w := newFixture(t, deployment("web"), dependent("web"), settingsConfigMap())
	w.references = []dependency.Reference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", LabelSelector: selector("app", "web")}}
	object := settingsConfigMap()
	if err := w.store.Get(t.Context(), bindingKey("settings"), object); err != nil {
		t.Fatal(err)
	}
	object.Labels = map[string]string{"app": "web"}
	if err := w.store.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	w.reconcile("web-deployment")
	w.templateReader = template.NewReader(nil, unservedConfigMaps{w.store})
	_, writes, _ := w.reconcile("web-deployment")
	expectEqual(t, "writes", writes)
}

type brokenRules struct{ err error }

func (b brokenRules) Rules(_ schema.GroupVersionKind) interpreter.Rules {
	return interpreter.Rules{Dependencies: func(context.Context, *unstructured.Unstructured) ([]dependency.Reference, error) { return nil, b.err }}
}

func TestInterpreterErrorChangesNothing(t *testing.T) {
	w := newAttachedFixture(t)
	w.rules = brokenRules{errors.New("the script is invalid")}
	w.writes = nil
	_, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: bindingKey("web-deployment")})
	if err == nil {
		t.Error("the failure is not retried")
	}
	expectEqual(t, "writes", w.writes)
	if event := <-w.recorder.Events; event != "Warning GetDependenciesFailed interpreting dependencies of Deployment shop/web: the script is invalid" {
		t.Errorf("event %q", event)
	}
}

func TestFailedInterpretationIsNotReportedForever(t *testing.T) {
	tests := map[string]func(w *fixture){
		"the rule succeeds again": func(w *fixture) { w.rules = w },
		"the rule is removed":     func(w *fixture) { w.rules = &interpreters.Table{} },
		"dependencies are no longer propagated": func(w *fixture) {
			w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			w := newAttachedFixture(t)
			condition := func() *metav1.Condition {
				stored := &workv1alpha2.ResourceBinding{}
				if err := w.store.Get(t.Context(), bindingKey("web-deployment"), stored); err != nil {
					t.Fatal(err)
				}
				return conditions.Get(stored.Status.Conditions, workv1alpha2.DependenciesInterpreted)
			}
			w.rules = brokenRules{errors.New("the script is invalid")}
			if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: bindingKey("web-deployment")}); err == nil {
				t.Error("the failure is not retried")
			}
			if failed := condition(); failed == nil || failed.Status != metav1.ConditionFalse {
				t.Fatalf("condition %v", failed)
			}
			change(w)
			w.reconcile("web-deployment")
			if current := condition(); current == nil || current.Status != metav1.ConditionTrue {
				t.Errorf("condition %v", current)
			}
		})
	}
}

func TestMissingTemplateWritesNothing(t *testing.T) {
	w := newAttachedFixture(t)
	if err := w.store.Delete(t.Context(), deployment("web")); err != nil {
		t.Fatal(err)
	}
	_, writes, events := w.reconcile("web-deployment")
	expectEqual(t, "writes", writes)
	expectEqual(t, "events", events)
}

func TestStaleTemplateIsRetried(t *testing.T) {
	w := newFixture(t, deployment("web"), dependent("web"), settingsConfigMap())
	w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.ResourceVersion = "123456" })
	result, writes, events := w.reconcile("web-deployment")
	expectEqual(t, "writes", writes)
	expectEqual(t, "events", events)
	if result != loop.StaleResult() {
		t.Errorf("result %v, want a retry with backoff", result)
	}
}
