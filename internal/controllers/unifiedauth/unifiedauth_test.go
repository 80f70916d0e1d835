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
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/domain/work"
)

// world is a reconciler over a store that counts writes, for the wiring only.
type world struct {
	t *testing.T
	*reconciler
	recorder *record.FakeRecorder
	writes   []string
	refuse   error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, recorder: record.NewFakeRecorder(100)}
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			w.writes = append(w.writes, "create "+object.GetName())
			if w.refuse != nil {
				return w.refuse
			}
			return c.Create(ctx, object, o...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, p client.Patch, o ...client.PatchOption) error {
			w.writes = append(w.writes, "patch "+object.GetName())
			return c.Patch(ctx, object, p, o...)
		},
	}).Build()
	w.reconciler = &reconciler{karmada: store, events: observe.NewEvents(w.recorder)}
	return w
}

// pass runs one pass for cluster m1 and returns its writes.
func (w *world) pass() []string {
	w.t.Helper()
	w.writes = nil
	if _, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "m1"}}); err != nil {
		w.t.Fatalf("a pass ended with: %v", err)
	}
	return w.writes
}

// change stores an object that a test has changed.
func (w *world) change(object client.Object, mutate func()) {
	w.t.Helper()
	if err := w.karmada.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		w.t.Fatal(err)
	}
	mutate()
	if err := w.karmada.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

// work reads a Work of m1 and what it carries.
func (w *world) work(name string) (*workv1alpha1.Work, *unstructured.Unstructured) {
	w.t.Helper()
	stored := &workv1alpha1.Work{}
	if err := w.karmada.Get(w.t.Context(), types.NamespacedName{Namespace: "karmada-es-m1", Name: name}, stored); err != nil {
		w.t.Fatal(err)
	}
	manifest, err := work.Decode(stored.Spec.Workload.Manifests[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return stored, manifest
}

// mayPass are the names that the role for m1 lists, by resource.
func (w *world) mayPass() map[string]string {
	w.t.Helper()
	_, manifest := w.work(roleWork)
	role, err := roleOf(manifest)
	if err != nil {
		w.t.Fatal(err)
	}
	names := map[string]string{}
	for _, rule := range role.Rules {
		names[rule.Resources[0]] = strings.Join(rule.ResourceNames, ",")
	}
	return names
}

const roleWork, bindingWork = "karmada-impersonator-7cbb6bd5c9", "karmada-impersonator-84f8c8f8c6"

func cluster() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "m1-1"},
		Spec:       clusterv1alpha1.ClusterSpec{ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "m1-impersonator"}},
	}
}

func space() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1"}}
}

func proxyRole(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"}},
	}}
}

func otherRole(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"pods"}},
	}}
}

func binding(role, user string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role + "-" + user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

func TestBothWorksAreCreatedWhole(t *testing.T) {
	w := newWorld(t, cluster(), space(), proxyRole("proxy"), otherRole("other"), binding("proxy", "ann"), binding("other", "bob"))
	if diff := cmp.Diff([]string{"create " + roleWork, "create " + bindingWork}, w.pass()); diff != "" {
		t.Fatalf("writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"users": "ann"}, w.mayPass()); diff != "" {
		t.Errorf("who may pass (-want +got):\n%s", diff)
	}
	wantOwner := []metav1.OwnerReference{{
		APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "m1", UID: "m1-1", Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	for _, name := range []string{roleWork, bindingWork} {
		stored, manifest := w.work(name)
		if diff := cmp.Diff(wantOwner, stored.OwnerReferences); diff != "" {
			t.Errorf("%s: owners (-want +got):\n%s", name, diff)
		}
		if !slices.Equal(stored.Finalizers, []string{"karmada.io/execution-controller"}) {
			t.Errorf("%s: finalizers %v", name, stored.Finalizers)
		}
		if manifest.GetName() != "karmada-impersonator" || manifest.GetLabels()["karmada.io/system"] != "true" {
			t.Errorf("%s: carries %s with labels %v", name, manifest.GetName(), manifest.GetLabels())
		}
		if id := stored.Labels["work.karmada.io/permanent-id"]; id == "" || manifest.GetLabels()["work.karmada.io/permanent-id"] != id {
			t.Errorf("%s: id %q, that of its manifest differs or is missing", name, id)
		}
		for key := range manifest.GetAnnotations() {
			if key == workv1alpha2.ResourceConflictResolutionAnnotation {
				t.Errorf("%s: says how to resolve conflicts", name)
			}
		}
	}
	if writes := w.pass(); len(writes) > 0 {
		t.Errorf("a second pass writes %v", writes)
	}
}

func TestWhatChangesIsPatchedOnce(t *testing.T) {
	role, bound, member := proxyRole("proxy"), binding("proxy", "ann"), cluster()
	tests := map[string]struct {
		change func(w *world)
		writes []string
		pass   map[string]string
	}{
		"another subject": {
			func(w *world) {
				w.change(bound, func() { bound.Subjects = append(bound.Subjects, rbacv1.Subject{Kind: "Group", Name: "dev"}) })
			},
			[]string{"patch " + roleWork}, map[string]string{"users": "ann", "groups": "dev"},
		},
		"a role that loses its rule": {
			func(w *world) { w.change(role, func() { role.Rules = nil }) },
			[]string{"patch " + roleWork}, map[string]string{},
		},
		"a role that is gone": {
			func(w *world) {
				if err := w.karmada.Delete(w.t.Context(), proxyRole("proxy")); err != nil {
					w.t.Fatal(err)
				}
			},
			[]string{"patch " + roleWork}, map[string]string{},
		},
		"a role narrowed to another cluster": {
			func(w *world) { w.change(role, func() { role.Rules[0].ResourceNames = []string{"m2"} }) },
			[]string{"patch " + roleWork}, map[string]string{},
		},
		"an impersonator in another namespace": {
			func(w *world) { w.change(member, func() { member.Spec.ImpersonatorSecretRef.Namespace = "elsewhere" }) },
			[]string{"patch " + bindingWork}, map[string]string{"users": "ann"},
		},
		"a subject twice": {
			func(w *world) {
				w.change(bound, func() { bound.Subjects = append(bound.Subjects, bound.Subjects[0]) })
			},
			nil, map[string]string{"users": "ann"},
		},
		"a reference that is gone, which leaves all as it is": {
			func(w *world) { w.change(member, func() { member.Spec.ImpersonatorSecretRef = nil }) },
			nil, map[string]string{"users": "ann"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cluster(), space(), proxyRole("proxy"), binding("proxy", "ann"))
			w.pass()
			test.change(w)
			if diff := cmp.Diff(test.writes, w.pass()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.pass, w.mayPass()); diff != "" {
				t.Errorf("who may pass (-want +got):\n%s", diff)
			}
			if writes := w.pass(); len(writes) > 0 {
				t.Errorf("another pass writes %v", writes)
			}
		})
	}
}

func TestAChangeIsToldOnce(t *testing.T) {
	w := newWorld(t, cluster(), space(), proxyRole("proxy"), binding("proxy", "ann"))
	w.pass()
	w.pass()
	close(w.recorder.Events)
	var events []string
	for event := range w.recorder.Events {
		events = append(events, event)
	}
	want := []string{"Normal SyncImpersonationConfigSucceed The control plane may act in the cluster for 1 users, 0 service accounts and 0 groups"}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestRoleBindingsGiveNoWay(t *testing.T) {
	inNamespace := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "proxy-bob"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "proxy"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "bob"}},
	}
	w := newWorld(t, cluster(), space(), proxyRole("proxy"), inNamespace)
	w.pass()
	if diff := cmp.Diff(map[string]string{}, w.mayPass()); diff != "" {
		t.Errorf("who may pass (-want +got):\n%s", diff)
	}
}

func TestClustersThatAreLeftAlone(t *testing.T) {
	leaving := cluster()
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Now()), []string{"karmada.io/cluster-controller"}
	ending := space()
	ending.DeletionTimestamp, ending.Finalizers = new(metav1.Now()), []string{"example.io/hold"}
	plain := cluster()
	plain.Spec.ImpersonatorSecretRef = nil
	tests := map[string][]client.Object{
		"one that is gone":                         {space()},
		"one that leaves":                          {leaving, space()},
		"one without an impersonator":              {plain, space()},
		"one without an execution namespace":       {cluster()},
		"one whose execution namespace is deleted": {cluster(), ending},
	}
	for name, objects := range tests {
		t.Run(name, func(t *testing.T) {
			if writes := newWorld(t, append(objects, proxyRole("proxy"), binding("proxy", "ann"))...).pass(); len(writes) > 0 {
				t.Errorf("writes %v", writes)
			}
		})
	}
}

func TestWorksOfOthersAreLeftAlone(t *testing.T) {
	tests := map[string]func(*workv1alpha1.Work){
		"one that a binding keeps": func(w *workv1alpha1.Work) {
			w.Labels = map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "id"}
		},
		"one of an earlier cluster of the same name": func(w *workv1alpha1.Work) {
			w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "m1", UID: "m1-0", Controller: new(true)}}
		},
		"one in deletion": func(w *workv1alpha1.Work) {
			w.DeletionTimestamp, w.Finalizers = new(metav1.Now()), []string{"karmada.io/execution-controller"}
		},
	}
	for name, mark := range tests {
		t.Run(name, func(t *testing.T) {
			theirs := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: roleWork}}
			mark(theirs)
			w := newWorld(t, cluster(), space(), theirs)
			if diff := cmp.Diff([]string{"create " + bindingWork}, w.pass()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFailureIsToldOnce(t *testing.T) {
	w := newWorld(t, cluster(), space())
	w.refuse = errors.New("the disk is full")
	for range 2 {
		if _, err := w.Reconcile(t.Context(), ask("m1")[0]); !errors.Is(err, w.refuse) {
			t.Fatalf("a pass ended with: %v", err)
		}
	}
	close(w.recorder.Events)
	var events []string
	for event := range w.recorder.Events {
		events = append(events, event)
	}
	want := fmt.Sprintf("Warning SyncImpersonationConfigFailed creating Work karmada-es-m1/%s: the disk is full", roleWork)
	if diff := cmp.Diff([]string{want}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
