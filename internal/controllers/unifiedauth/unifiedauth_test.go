package unifiedauth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// fixture is a reconciler with a fake store that counts writes. It does not run the event handlers.
type fixture struct {
	t *testing.T
	*reconciler
	recorder  *record.FakeRecorder
	writes    []string
	createErr error
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	f := &fixture{t: t, recorder: record.NewFakeRecorder(100)}
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			f.writes = append(f.writes, "create "+object.GetName())
			if f.createErr != nil {
				return f.createErr
			}
			return c.Create(ctx, object, o...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, p client.Patch, o ...client.PatchOption) error {
			f.writes = append(f.writes, "patch "+object.GetName())
			return c.Patch(ctx, object, p, o...)
		},
	}).Build()
	f.reconciler = &reconciler{karmada: store, events: loop.NewEvents(f.recorder)}
	return f
}

// reconcileOnce runs one pass for cluster m1 and returns the pass's writes.
func (f *fixture) reconcileOnce() []string {
	f.t.Helper()
	f.writes = nil
	if _, err := f.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "m1"}}); err != nil {
		f.t.Fatalf("a pass returned: %v", err)
	}
	return f.writes
}

// update reads an object, calls mutate and stores the object.
func (f *fixture) update(object client.Object, mutate func()) {
	f.t.Helper()
	if err := f.karmada.Get(f.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		f.t.Fatal(err)
	}
	mutate()
	if err := f.karmada.Update(f.t.Context(), object); err != nil {
		f.t.Fatal(err)
	}
}

// readWork reads one of m1's Works and its manifest.
func (f *fixture) readWork(name string) (*workv1alpha1.Work, *unstructured.Unstructured) {
	f.t.Helper()
	stored := &workv1alpha1.Work{}
	if err := f.karmada.Get(f.t.Context(), types.NamespacedName{Namespace: "karmada-es-m1", Name: name}, stored); err != nil {
		f.t.Fatal(err)
	}
	manifest, err := work.DecodeManifest(stored.Spec.Workload.Manifests[0])
	if err != nil {
		f.t.Fatal(err)
	}
	return stored, manifest
}

// allowedNames returns the names in the rules of the role for m1, by resource.
func (f *fixture) allowedNames() map[string]string {
	f.t.Helper()
	_, manifest := f.readWork(roleWork)
	role, err := roleOf(manifest)
	if err != nil {
		f.t.Fatal(err)
	}
	names := map[string]string{}
	for _, rule := range role.Rules {
		names[rule.Resources[0]] = strings.Join(rule.ResourceNames, ",")
	}
	return names
}

const roleWork, bindingWork = "karmada-impersonator-7cbb6bd5c9", "karmada-impersonator-84f8c8f8c6"

func newCluster() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "m1-1"},
		Spec:       clusterv1alpha1.ClusterSpec{ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "m1-impersonator"}},
	}
}

func newExecutionNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1"}}
}

func newProxyRole(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"}},
	}}
}

func newOtherRole(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"pods"}},
	}}
}

func newBinding(role, user string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role + "-" + user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

func TestBothWorksAreCreated(t *testing.T) {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "this"}}
	f := newFixture(t, system, newCluster(), newExecutionNamespace(), newProxyRole("proxy"), newOtherRole("other"), newBinding("proxy", "ann"), newBinding("other", "bob"))
	if diff := cmp.Diff([]string{"create " + roleWork, "create " + bindingWork}, f.reconcileOnce()); diff != "" {
		t.Fatalf("writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"users": "ann"}, f.allowedNames()); diff != "" {
		t.Errorf("users with access (-want +got):\n%s", diff)
	}
	wantOwner := []metav1.OwnerReference{{
		APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "m1", UID: "m1-1", Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	for _, name := range []string{roleWork, bindingWork} {
		stored, manifest := f.readWork(name)
		if diff := cmp.Diff(wantOwner, stored.OwnerReferences); diff != "" {
			t.Errorf("%s: owners (-want +got):\n%s", name, diff)
		}
		if !slices.Equal(stored.Finalizers, []string{"karmada.io/execution-controller"}) {
			t.Errorf("%s: finalizers %v", name, stored.Finalizers)
		}
		if manifest.GetName() != "karmada-impersonator" || manifest.GetLabels()["karmada.io/system"] != "true" {
			t.Errorf("%s: the manifest is %s with labels %v", name, manifest.GetName(), manifest.GetLabels())
		}
		if owner := manifest.GetAnnotations()["cluster.karmada.io/control-plane"]; owner != "this" {
			t.Errorf("%s: the manifest names control plane %q", name, owner)
		}
		if id := stored.Labels["work.karmada.io/permanent-id"]; id == "" || manifest.GetLabels()["work.karmada.io/permanent-id"] != id {
			t.Errorf("%s: id %q, the id of the manifest differs or is missing", name, id)
		}
		for key := range manifest.GetAnnotations() {
			if key == workv1alpha2.ResourceConflictResolutionAnnotation {
				t.Errorf("%s: has a conflict resolution", name)
			}
		}
	}
	if writes := f.reconcileOnce(); len(writes) > 0 {
		t.Errorf("a second pass writes %v", writes)
	}
}

func TestChangesArePatchedOnce(t *testing.T) {
	role, bound, member := newProxyRole("proxy"), newBinding("proxy", "ann"), newCluster()
	tests := map[string]struct {
		change  func(f *fixture)
		writes  []string
		allowed map[string]string
	}{
		"another subject": {
			func(f *fixture) {
				f.update(bound, func() { bound.Subjects = append(bound.Subjects, rbacv1.Subject{Kind: "Group", Name: "dev"}) })
			},
			[]string{"patch " + roleWork}, map[string]string{"users": "ann", "groups": "dev"},
		},
		"a role without rules": {
			func(f *fixture) { f.update(role, func() { role.Rules = nil }) },
			[]string{"patch " + roleWork}, map[string]string{},
		},
		"a deleted role": {
			func(f *fixture) {
				if err := f.karmada.Delete(f.t.Context(), newProxyRole("proxy")); err != nil {
					f.t.Fatal(err)
				}
			},
			[]string{"patch " + roleWork}, map[string]string{},
		},
		"a role restricted to another cluster": {
			func(f *fixture) { f.update(role, func() { role.Rules[0].ResourceNames = []string{"m2"} }) },
			[]string{"patch " + roleWork}, map[string]string{},
		},
		"an impersonator in another namespace": {
			func(f *fixture) {
				f.update(member, func() { member.Spec.ImpersonatorSecretRef.Namespace = "elsewhere" })
			},
			[]string{"patch " + bindingWork}, map[string]string{"users": "ann"},
		},
		"a duplicate subject": {
			func(f *fixture) {
				f.update(bound, func() { bound.Subjects = append(bound.Subjects, bound.Subjects[0]) })
			},
			nil, map[string]string{"users": "ann"},
		},
		"a removed reference keeps the Works": {
			func(f *fixture) { f.update(member, func() { member.Spec.ImpersonatorSecretRef = nil }) },
			nil, map[string]string{"users": "ann"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newCluster(), newExecutionNamespace(), newProxyRole("proxy"), newBinding("proxy", "ann"))
			f.reconcileOnce()
			test.change(f)
			if diff := cmp.Diff(test.writes, f.reconcileOnce()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.allowed, f.allowedNames()); diff != "" {
				t.Errorf("users with access (-want +got):\n%s", diff)
			}
			if writes := f.reconcileOnce(); len(writes) > 0 {
				t.Errorf("another pass writes %v", writes)
			}
		})
	}
}

func TestChangeIsRecordedOnce(t *testing.T) {
	f := newFixture(t, newCluster(), newExecutionNamespace(), newProxyRole("proxy"), newBinding("proxy", "ann"))
	f.reconcileOnce()
	f.reconcileOnce()
	close(f.recorder.Events)
	var events []string
	for event := range f.recorder.Events {
		events = append(events, event)
	}
	want := []string{"Normal SyncImpersonationConfigSucceed The control plane may act in the cluster for 1 users, 0 service accounts and 0 groups"}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestNamespacedRoleBindingsGiveNoAccess(t *testing.T) {
	inNamespace := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "proxy-bob"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "proxy"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "bob"}},
	}
	f := newFixture(t, newCluster(), newExecutionNamespace(), newProxyRole("proxy"), inNamespace)
	f.reconcileOnce()
	if diff := cmp.Diff(map[string]string{}, f.allowedNames()); diff != "" {
		t.Errorf("users with access (-want +got):\n%s", diff)
	}
}

func TestIgnoredClusters(t *testing.T) {
	leaving := newCluster()
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Now()), []string{"karmada.io/cluster-controller"}
	deletedNamespace := newExecutionNamespace()
	deletedNamespace.DeletionTimestamp, deletedNamespace.Finalizers = new(metav1.Now()), []string{"example.io/hold"}
	withoutImpersonator := newCluster()
	withoutImpersonator.Spec.ImpersonatorSecretRef = nil
	tests := map[string][]client.Object{
		"a deleted cluster":                  {newExecutionNamespace()},
		"a cluster in deletion":              {leaving, newExecutionNamespace()},
		"no impersonator":                    {withoutImpersonator, newExecutionNamespace()},
		"no execution namespace":             {newCluster()},
		"an execution namespace in deletion": {newCluster(), deletedNamespace},
	}
	for name, objects := range tests {
		t.Run(name, func(t *testing.T) {
			if writes := newFixture(t, append(objects, newProxyRole("proxy"), newBinding("proxy", "ann"))...).reconcileOnce(); len(writes) > 0 {
				t.Errorf("writes %v", writes)
			}
		})
	}
}

func TestWorksOfOtherOwnersAreNotChanged(t *testing.T) {
	tests := map[string]func(*workv1alpha1.Work){
		"a Work that a binding manages": func(w *workv1alpha1.Work) {
			w.Labels = map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "id"}
		},
		"a Work of an earlier cluster of the same name": func(w *workv1alpha1.Work) {
			w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "m1", UID: "m1-0", Controller: new(true)}}
		},
		"a Work in deletion": func(w *workv1alpha1.Work) {
			w.DeletionTimestamp, w.Finalizers = new(metav1.Now()), []string{"karmada.io/execution-controller"}
		},
	}
	for name, modify := range tests {
		t.Run(name, func(t *testing.T) {
			foreign := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: roleWork}}
			modify(foreign)
			f := newFixture(t, newCluster(), newExecutionNamespace(), foreign)
			if diff := cmp.Diff([]string{"create " + bindingWork}, f.reconcileOnce()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailureIsRecordedOnce(t *testing.T) {
	f := newFixture(t, newCluster(), newExecutionNamespace())
	f.createErr = errors.New("the disk is full")
	for range 2 {
		if _, err := f.Reconcile(t.Context(), requestFor("m1")[0]); !errors.Is(err, f.createErr) {
			t.Fatalf("a pass returned: %v", err)
		}
	}
	close(f.recorder.Events)
	var events []string
	for event := range f.recorder.Events {
		events = append(events, event)
	}
	want := fmt.Sprintf("Warning SyncImpersonationConfigFailed creating Work karmada-es-m1/%s: the disk is full", roleWork)
	if diff := cmp.Diff([]string{want}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
