package namespace

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"karmada.io/karmada/api"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// fixture is a reconciler with a fake store that counts writes. It does not run the event handlers.
type fixture struct {
	t *testing.T
	*reconciler
	requests []string
	recorder *record.FakeRecorder
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	f := &fixture{t: t, recorder: record.NewFakeRecorder(100)}
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			f.requests = append(f.requests, fmt.Sprintf("create %T", object))
			return c.Create(ctx, object, o...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, p client.Patch, o ...client.PatchOption) error {
			f.requests = append(f.requests, fmt.Sprintf("patch %T", object))
			return c.Patch(ctx, object, p, o...)
		},
	}).Build()
	f.reconciler = &reconciler{options: DefaultOptions(), karmada: store, events: loop.NewEvents(f.recorder)}
	return f
}

// reconcileOnce runs one pass for Namespace shop in cluster m1 and returns the pass's writes.
func (f *fixture) reconcileOnce() []string {
	f.t.Helper()
	f.requests = nil
	if _, err := f.Reconcile(f.t.Context(), request{"shop", "m1"}); err != nil {
		f.t.Fatalf("a pass returned: %v", err)
	}
	return f.requests
}

func newTypedNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-1")},
	}
}

func newCluster(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func newChangedNamespace(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	object := newNamespace()
	object.SetName("shop")
	change(object)
	return object
}

func TestNamespaceCreatesOneWorkPerCluster(t *testing.T) {
	f := newFixture(t, newTypedNamespace("shop"), newTypedNamespace("karmada-es-m1"), newCluster("m1"))
	if diff := cmp.Diff([]string{"create *v1alpha1.Work"}, f.reconcileOnce()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if requests := f.reconcileOnce(); len(requests) != 0 {
		t.Errorf("the second pass sends %v", requests)
	}
	stored := &workv1alpha1.Work{}
	if err := f.karmada.Get(t.Context(), types.NamespacedName{Namespace: "karmada-es-m1", Name: workName("shop")}, stored); err != nil {
		t.Fatal(err)
	}
	owner := metav1.GetControllerOf(stored)
	if owner == nil || owner.Kind != "Namespace" || owner.UID != "shop-1" {
		t.Errorf("the Work is owned by %v", owner)
	}
	if stored.Labels[workv1alpha1.WorkPermanentIDLabel] == "" {
		t.Error("the Work has no permanent id")
	}
}

func TestMissingObjectsCauseNoWrites(t *testing.T) {
	cases := map[string][]client.Object{
		"the execution namespace is missing": {newTypedNamespace("shop"), newCluster("m1")},
		"the cluster is missing":             {newTypedNamespace("shop"), newTypedNamespace("karmada-es-m1")},
		"the Namespace is missing":           {newTypedNamespace("karmada-es-m1"), newCluster("m1")},
	}
	for name, objects := range cases {
		t.Run(name, func(t *testing.T) {
			if requests := newFixture(t, objects...).reconcileOnce(); len(requests) != 0 {
				t.Errorf("requests: %v", requests)
			}
		})
	}
}

func TestNoWorksForClustersInDeletion(t *testing.T) {
	leaving := func(object client.Object) client.Object {
		object.SetFinalizers([]string{"example.io/wait"})
		object.SetDeletionTimestamp(new(metav1.Now()))
		return object
	}
	cases := map[string][]client.Object{
		"a cluster in deletion":              {newTypedNamespace("karmada-es-m1"), leaving(newCluster("m1"))},
		"an execution namespace in deletion": {leaving(newTypedNamespace("karmada-es-m1")), newCluster("m1")},
	}
	for name, objects := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, append(objects, newTypedNamespace("shop"))...)
			if requests := f.reconcileOnce(); len(requests) != 0 {
				t.Errorf("requests: %v", requests)
			}
		})
	}
}

func TestNamespaceExcludedLaterKeepsItsWork(t *testing.T) {
	f := newFixture(t, newTypedNamespace("shop"), newTypedNamespace("karmada-es-m1"), newCluster("m1"))
	f.reconcileOnce()
	excluded := newTypedNamespace("shop")
	excluded.Labels = map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "True", "team": "a"}
	if err := f.karmada.Update(t.Context(), excluded); err != nil {
		t.Fatal(err)
	}
	if requests := f.reconcileOnce(); len(requests) != 0 {
		t.Errorf("requests: %v", requests)
	}
}

func TestIsManagedHere(t *testing.T) {
	now := metav1.Now()
	cases := map[string]struct {
		change func(*workv1alpha1.Work)
		want   bool
	}{
		"a Work of this Namespace":       {func(*workv1alpha1.Work) {}, true},
		"a Work without an owner":        {func(w *workv1alpha1.Work) { w.OwnerReferences = nil }, true},
		"a Work of an earlier Namespace": {func(w *workv1alpha1.Work) { w.OwnerReferences[0].UID = "shop-0" }, false},
		"a Work in deletion":             {func(w *workv1alpha1.Work) { w.DeletionTimestamp = &now }, false},
		"a Work that a binding manages": {func(w *workv1alpha1.Work) {
			w.Labels = map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "id"}
		}, false},
		"a Work with another label": {func(w *workv1alpha1.Work) { w.Labels = map[string]string{"a": "b"} }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stored := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(newTypedNamespace("shop"), gvk)},
			}}
			tc.change(stored)
			if got := isManagedHere(stored, "shop-1"); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestWorkOfABindingOnlyGetsAnOwner(t *testing.T) {
	f := newFixture(t, newTypedNamespace("shop"), newTypedNamespace("karmada-es-m1"), newCluster("m1"))
	bound := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: workName("shop"),
		Labels: map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "id"},
	}}
	bound.Spec.SuspendDispatching = new(true)
	if err := f.karmada.Create(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	read := func() *workv1alpha1.Work {
		t.Helper()
		stored := &workv1alpha1.Work{}
		if err := f.karmada.Get(t.Context(), client.ObjectKeyFromObject(bound), stored); err != nil {
			t.Fatal(err)
		}
		return stored
	}
	if diff := cmp.Diff([]string{"patch *v1.PartialObjectMetadata"}, f.reconcileOnce()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	owned := read()
	if owner := work.NamespaceOwner(owned); owner == nil || owner.UID != "shop-1" {
		t.Errorf("owned by %v", owner)
	}
	if diff := cmp.Diff(bound.Spec, owned.Spec); diff != "" {
		t.Errorf("the spec changed (-want +got):\n%s", diff)
	}
	if requests := f.reconcileOnce(); len(requests) != 0 {
		t.Errorf("requests: %v", requests)
	}

	if err := f.karmada.Update(t.Context(), work.WithoutBinding(owned)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"patch *v1alpha1.Work"}, f.reconcileOnce()); diff != "" {
		t.Errorf("after the binding is removed (-want +got):\n%s", diff)
	}
	if got := read(); len(got.Spec.Workload.Manifests) != 1 || got.Spec.SuspendDispatching != nil {
		t.Errorf("the Work is not rendered: %v", got.Spec)
	}
}

func TestInvalidOverridePolicyCausesNoWrites(t *testing.T) {
	mistake := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "mistake"}}
	mistake.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
		Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/nowhere", Operator: policyv1alpha1.OverriderOpRemove}},
	}}}
	if requests := newFixture(t, newTypedNamespace("shop"), newTypedNamespace("karmada-es-m1"), newCluster("m1"), mistake).reconcileOnce(); len(requests) != 0 {
		t.Errorf("requests: %v", requests)
	}
}

func TestFailureIsRecordedOncePerCluster(t *testing.T) {
	mistake := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "mistake"}}
	mistake.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
		Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/nowhere", Operator: policyv1alpha1.OverriderOpRemove}},
	}}}
	f := newFixture(t, newTypedNamespace("shop"), newTypedNamespace("karmada-es-m1"), newTypedNamespace("karmada-es-m2"), newCluster("m1"), newCluster("m2"), mistake)
	for range 3 {
		for _, name := range []string{"m1", "m2"} {
			if _, err := f.Reconcile(t.Context(), request{"shop", name}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if events := len(f.recorder.Events); events != 2 {
		t.Errorf("%d events for failures in two clusters", events)
	}
}

func TestIsPropagated(t *testing.T) {
	skipped, err := tenancy.ParseSkippedNamespaces([]string{"kube-.*"})
	if err != nil {
		t.Fatal(err)
	}
	labelled := func(value string) func(*unstructured.Unstructured) {
		return func(n *unstructured.Unstructured) {
			n.SetLabels(map[string]string{"namespace.karmada.io/skip-auto-propagation": value})
		}
	}
	named := func(name string) func(*unstructured.Unstructured) {
		return func(n *unstructured.Unstructured) { n.SetName(name) }
	}
	cases := map[string]struct {
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"a Namespace":                     {named("shop"), true},
		"the default Namespace":           {named("default"), false},
		"karmada-system":                  {named("karmada-system"), false},
		"karmada-cluster":                 {named("karmada-cluster"), false},
		"an execution namespace":          {named("karmada-es-m1"), false},
		"a skipped Namespace":             {named("kube-system"), false},
		"expressions match whole names":   {named("my-kube-things"), true},
		"the skip label":                  {labelled("true"), false},
		"the skip label in upper case":    {labelled("TRUE"), false},
		"another value of the skip label": {labelled("false"), true},
		"a Namespace in deletion":         {func(n *unstructured.Unstructured) { n.SetDeletionTimestamp(new(metav1.Now())) }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isPropagated(newChangedNamespace(tc.change), skipped); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestNamespaceOfWorkName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?`).Draw(t, "name")
		if got, ok := namespaceOf(workName(name)); !ok || got != name {
			t.Fatalf("got %q, %v", got, ok)
		}
		if got, ok := namespaceOf(work.Name("Deployment", "shop", name)); ok {
			t.Fatalf("a Deployment counts as Namespace %q", got)
		}
	})
	if _, ok := namespaceOf("name"); ok {
		t.Error("a name without a hash counts as that of a Namespace")
	}
}

func TestIsSelectedByOverridePolicies(t *testing.T) {
	selector := func(kind, name string) []policyv1alpha1.ResourceSelector {
		return []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: kind, Name: name}}
	}
	cases := map[string]struct {
		selectors []policyv1alpha1.ResourceSelector
		want      bool
	}{
		"without selectors": {nil, true},
		"by kind":           {selector("Namespace", ""), true},
		"by name":           {selector("Namespace", "shop"), true},
		"by another name":   {selector("Namespace", "bank"), false},
		"by another kind":   {selector("ConfigMap", ""), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newTypedNamespace("shop"), newTypedNamespace("kept"), newCluster("m1"), newCluster("m2"))
			candidate := &policyv1alpha1.ClusterOverridePolicy{Spec: policyv1alpha1.OverrideSpec{ResourceSelectors: tc.selectors}}
			if got := isSelectedBy(newChangedNamespace(func(*unstructured.Unstructured) {}), candidate); got != tc.want {
				t.Errorf("got %v", got)
			}
			names := f.propagatedNames(t.Context(), func(n *unstructured.Unstructured) bool { return isSelectedBy(n, candidate) })
			if got := len(requestsFor(names, f.clusterNames(t.Context()))); (got >= 2) != tc.want {
				t.Errorf("%d pairs are enqueued", got)
			}
		})
	}
}

func TestHasPropagatedChange(t *testing.T) {
	cases := map[string]struct {
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"labels":                 {func(n *unstructured.Unstructured) { n.SetLabels(map[string]string{"a": "b"}) }, true},
		"annotations":            {func(n *unstructured.Unstructured) { n.SetAnnotations(map[string]string{"a": "b"}) }, true},
		"the resourceVersion":    {func(n *unstructured.Unstructured) { n.SetResourceVersion("7") }, false},
		"the phase":              {func(n *unstructured.Unstructured) { n.Object["status"] = map[string]any{"phase": "Active"} }, false},
		"the deletion timestamp": {func(n *unstructured.Unstructured) { n.SetDeletionTimestamp(new(metav1.Now())) }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := hasPropagatedChange(newChangedNamespace(func(*unstructured.Unstructured) {}), newChangedNamespace(tc.change)); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
