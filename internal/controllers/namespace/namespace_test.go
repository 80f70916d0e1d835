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
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/domain/reach"
	"karmada.io/karmada/internal/domain/work"
)

// world is a reconciler over a store that counts writes, for the wiring only.
type world struct {
	t *testing.T
	*reconciler
	requests []string
	recorder *record.FakeRecorder
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, recorder: record.NewFakeRecorder(100)}
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			w.requests = append(w.requests, fmt.Sprintf("create %T", object))
			return c.Create(ctx, object, o...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, p client.Patch, o ...client.PatchOption) error {
			w.requests = append(w.requests, fmt.Sprintf("patch %T", object))
			return c.Patch(ctx, object, p, o...)
		},
	}).Build()
	w.reconciler = &reconciler{options: DefaultOptions(), karmada: store, events: observe.NewEvents(w.recorder)}
	return w
}

// pass runs one pass for Namespace shop in cluster m1 and returns its writes.
func (w *world) pass() []string {
	w.t.Helper()
	w.requests = nil
	if _, err := w.Reconcile(w.t.Context(), request{"shop", "m1"}); err != nil {
		w.t.Fatalf("a pass ended with: %v", err)
	}
	return w.requests
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-1")},
	}
}

func cluster(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func seen(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	object := empty()
	object.SetName("shop")
	change(object)
	return object
}

func TestANamespaceCostsOneCreateForEachCluster(t *testing.T) {
	w := newWorld(t, namespace("shop"), namespace("karmada-es-m1"), cluster("m1"))
	if diff := cmp.Diff([]string{"create *v1alpha1.Work"}, w.pass()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if requests := w.pass(); len(requests) != 0 {
		t.Errorf("a pass that finds everything in order asked for %v", requests)
	}
	stored := &workv1alpha1.Work{}
	if err := w.karmada.Get(t.Context(), types.NamespacedName{Namespace: "karmada-es-m1", Name: workName("shop")}, stored); err != nil {
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

func TestAPassWithoutAPlaceForTheWorkAsksForNothing(t *testing.T) {
	cases := map[string][]client.Object{
		"the execution namespace is missing": {namespace("shop"), cluster("m1")},
		"the cluster is missing":             {namespace("shop"), namespace("karmada-es-m1")},
		"the Namespace is missing":           {namespace("karmada-es-m1"), cluster("m1")},
	}
	for name, objects := range cases {
		t.Run(name, func(t *testing.T) {
			if requests := newWorld(t, objects...).pass(); len(requests) != 0 {
				t.Errorf("asked for %v", requests)
			}
		})
	}
}

func TestNothingIsPutWhereAClusterLeaves(t *testing.T) {
	leaving := func(object client.Object) client.Object {
		object.SetFinalizers([]string{"example.io/wait"})
		object.SetDeletionTimestamp(new(metav1.Now()))
		return object
	}
	cases := map[string][]client.Object{
		"a cluster in deletion":              {namespace("karmada-es-m1"), leaving(cluster("m1"))},
		"the place of its Works in deletion": {leaving(namespace("karmada-es-m1")), cluster("m1")},
	}
	for name, objects := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(objects, namespace("shop"))...)
			if requests := w.pass(); len(requests) != 0 {
				t.Errorf("asked for %v", requests)
			}
		})
	}
}

func TestALabelAddedLaterKeepsTheWorkAsItIs(t *testing.T) {
	w := newWorld(t, namespace("shop"), namespace("karmada-es-m1"), cluster("m1"))
	w.pass()
	excluded := namespace("shop")
	excluded.Labels = map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "True", "team": "a"}
	if err := w.karmada.Update(t.Context(), excluded); err != nil {
		t.Fatal(err)
	}
	if requests := w.pass(); len(requests) != 0 {
		t.Errorf("asked for %v", requests)
	}
}

func TestWorksOfOthersAreLeft(t *testing.T) {
	now := metav1.Now()
	cases := map[string]struct {
		change func(*workv1alpha1.Work)
		want   bool
	}{
		"a Work of this Namespace is ours":       {func(*workv1alpha1.Work) {}, true},
		"a Work without an owner is ours":        {func(w *workv1alpha1.Work) { w.OwnerReferences = nil }, true},
		"a Work of an earlier Namespace will go": {func(w *workv1alpha1.Work) { w.OwnerReferences[0].UID = "shop-0" }, false},
		"a Work in deletion will go":             {func(w *workv1alpha1.Work) { w.DeletionTimestamp = &now }, false},
		"a Work that a binding keeps is the binding's": {func(w *workv1alpha1.Work) {
			w.Labels = map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "id"}
		}, false},
		"a label of something else makes no difference": {func(w *workv1alpha1.Work) { w.Labels = map[string]string{"a": "b"} }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stored := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(namespace("shop"), gvk)},
			}}
			tc.change(stored)
			if got := ours(stored, "shop-1"); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAWorkThatABindingKeepsIsOwnedAndOtherwiseLeft(t *testing.T) {
	w := newWorld(t, namespace("shop"), namespace("karmada-es-m1"), cluster("m1"))
	bound := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: workName("shop"),
		Labels: map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "id"},
	}}
	bound.Spec.SuspendDispatching = new(true)
	if err := w.karmada.Create(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	read := func() *workv1alpha1.Work {
		t.Helper()
		stored := &workv1alpha1.Work{}
		if err := w.karmada.Get(t.Context(), client.ObjectKeyFromObject(bound), stored); err != nil {
			t.Fatal(err)
		}
		return stored
	}
	if diff := cmp.Diff([]string{"patch *v1alpha1.Work"}, w.pass()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	owned := read()
	if owner := work.NamespaceOwner(owned); owner == nil || owner.UID != "shop-1" {
		t.Errorf("owned by %v", owner)
	}
	if diff := cmp.Diff(bound.Spec, owned.Spec); diff != "" {
		t.Errorf("the binding's spec was changed (-want +got):\n%s", diff)
	}
	if requests := w.pass(); len(requests) != 0 {
		t.Errorf("asked for %v", requests)
	}

	if err := w.karmada.Update(t.Context(), work.Unbind(owned)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"patch *v1alpha1.Work"}, w.pass()); diff != "" {
		t.Errorf("when the binding is gone (-want +got):\n%s", diff)
	}
	if got := read(); len(got.Spec.Workload.Manifests) != 1 || got.Spec.SuspendDispatching != nil {
		t.Errorf("the Work is not rendered anew: %v", got.Spec)
	}
}

func TestAMistakeInAnOverridePolicyEndsThePass(t *testing.T) {
	mistake := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "mistake"}}
	mistake.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
		Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/nowhere", Operator: policyv1alpha1.OverriderOpRemove}},
	}}}
	if requests := newWorld(t, namespace("shop"), namespace("karmada-es-m1"), cluster("m1"), mistake).pass(); len(requests) != 0 {
		t.Errorf("asked for %v", requests)
	}
}

func TestAFailureIsToldOnceForEachCluster(t *testing.T) {
	mistake := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "mistake"}}
	mistake.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
		Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/nowhere", Operator: policyv1alpha1.OverriderOpRemove}},
	}}}
	w := newWorld(t, namespace("shop"), namespace("karmada-es-m1"), namespace("karmada-es-m2"), cluster("m1"), cluster("m2"), mistake)
	for range 3 {
		for _, name := range []string{"m1", "m2"} {
			if _, err := w.Reconcile(t.Context(), request{"shop", name}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if told := len(w.recorder.Events); told != 2 {
		t.Errorf("told %d times of what fails in two clusters", told)
	}
}

func TestWhichNamespacesArePropagated(t *testing.T) {
	skipped, err := reach.ParseSkippedNamespaces([]string{"kube-.*"})
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
		"any":                           {named("shop"), true},
		"not the default one":           {named("default"), false},
		"not karmada-system":            {named("karmada-system"), false},
		"not karmada-cluster":           {named("karmada-cluster"), false},
		"no execution namespace":        {named("karmada-es-m1"), false},
		"none that the operator skips":  {named("kube-system"), false},
		"expressions match whole names": {named("my-kube-things"), true},
		"none with the label":           {labelled("true"), false},
		"the case of the label is free": {labelled("TRUE"), false},
		"another value of the label":    {labelled("false"), true},
		"none in deletion":              {func(n *unstructured.Unstructured) { n.SetDeletionTimestamp(new(metav1.Now())) }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := propagated(seen(tc.change), skipped); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTheNameOfAWorkLeadsBackToItsNamespace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?`).Draw(t, "name")
		if got, ok := namespaceOf(workName(name)); !ok || got != name {
			t.Fatalf("got %q, %v", got, ok)
		}
		if got, ok := namespaceOf(work.Name("Deployment", "shop", name)); ok {
			t.Fatalf("a Deployment is taken for Namespace %q", got)
		}
	})
	if _, ok := namespaceOf("name"); ok {
		t.Error("a name without a hash is one of a Namespace")
	}
}

func TestOverridePoliciesThatConcernANamespace(t *testing.T) {
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
			w := newWorld(t, namespace("shop"), namespace("kept"), cluster("m1"), cluster("m2"))
			candidate := &policyv1alpha1.ClusterOverridePolicy{Spec: policyv1alpha1.OverrideSpec{ResourceSelectors: tc.selectors}}
			if got := concerns(seen(func(*unstructured.Unstructured) {}), candidate); got != tc.want {
				t.Errorf("got %v", got)
			}
			names := w.namespaces(t.Context(), func(n *unstructured.Unstructured) bool { return concerns(n, candidate) })
			if got := len(pairs(names, w.clusters(t.Context()))); (got >= 2) != tc.want {
				t.Errorf("%d pairs would be looked at", got)
			}
		})
	}
}

func TestOnlyWhatIsPropagatedCountsAsAChange(t *testing.T) {
	cases := map[string]struct {
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"labels":           {func(n *unstructured.Unstructured) { n.SetLabels(map[string]string{"a": "b"}) }, true},
		"annotations":      {func(n *unstructured.Unstructured) { n.SetAnnotations(map[string]string{"a": "b"}) }, true},
		"the version":      {func(n *unstructured.Unstructured) { n.SetResourceVersion("7") }, false},
		"the phase":        {func(n *unstructured.Unstructured) { n.Object["status"] = map[string]any{"phase": "Active"} }, false},
		"the start of end": {func(n *unstructured.Unstructured) { n.SetDeletionTimestamp(new(metav1.Now())) }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := changed(seen(func(*unstructured.Unstructured) {}), seen(tc.change)); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
