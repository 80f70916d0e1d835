package quotasync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/api"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

var request = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "team"}}

// newQuota returns a quota that assigns a number of CPUs to clusters.
func newQuota(assignments ...string) *policyv1alpha1.FederatedResourceQuota {
	created := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team", UID: "quota", Generation: 1}}
	for _, assignment := range assignments {
		cluster, cpu, _ := strings.Cut(assignment, "=")
		created.Spec.StaticAssignments = append(created.Spec.StaticAssignments, policyv1alpha1.StaticClusterAssignment{
			ClusterName: cluster, Hard: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		})
	}
	return created
}

func newCluster(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func newStore(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	for _, index := range []loop.Index{loop.WorksByQuota, quotasByCluster} {
		for _, kind := range index.Types {
			builder = builder.WithIndex(kind, index.Name, index.Keys)
		}
	}
	return builder.Build()
}

func newReconciler(karmada client.WithWatch) *reconciler {
	return &reconciler{karmada: karmada, live: karmada, events: loop.NewEvents(record.NewFakeRecorder(50))}
}

// describeWorks returns the cluster and the limits of each Work, sorted.
func describeWorks(ctx context.Context, from client.Reader) ([]string, error) {
	works := &workv1alpha1.WorkList{}
	if err := from.List(ctx, works); err != nil {
		return nil, err
	}
	var texts []string
	for i := range works.Items {
		manifest, err := work.DecodeManifest(works.Items[i].Spec.Workload.Manifests[0])
		if err != nil {
			return nil, err
		}
		spec, _ := manifest.Object["spec"].(map[string]any)
		texts = append(texts, fmt.Sprintf("%s: %s %s/%s %v", works.Items[i].Namespace, manifest.GetKind(), manifest.GetNamespace(),
			manifest.GetName(), spec["hard"]))
	}
	slices.Sort(texts)
	return texts, nil
}

func TestWorksFollowAssignments(t *testing.T) {
	// Each step changes the store. The Works after it must be those that it names.
	steps := []struct {
		name   string
		change func(context.Context, client.Client) error
		want   []string
	}{
		{"only existing clusters get a Work", nil, []string{"karmada-es-m1: ResourceQuota shop/team map[cpu:4]"}},
		{"a cluster is registered later",
			func(ctx context.Context, c client.Client) error { return c.Create(ctx, newCluster("m2")) },
			[]string{"karmada-es-m1: ResourceQuota shop/team map[cpu:4]", "karmada-es-m2: ResourceQuota shop/team map[cpu:3]"}},
		{"assignments change", func(ctx context.Context, c client.Client) error { return updateQuota(ctx, c, "m2=1", "m2=9") },
			[]string{"karmada-es-m2: ResourceQuota shop/team map[cpu:1]"}},
		{"the quota is deleted", func(ctx context.Context, c client.Client) error { return c.Delete(ctx, newQuota()) }, nil},
	}
	store := newStore(t, newQuota("m1=4", "m2=3"), newCluster("m1"))
	r := newReconciler(store)
	for _, step := range steps {
		if step.change != nil {
			if err := step.change(t.Context(), store); err != nil {
				t.Fatal(err)
			}
		}
		runUntilSettled(t, r, store)
		got, err := describeWorks(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func updateQuota(ctx context.Context, karmada client.Client, assignments ...string) error {
	stored := newQuota()
	if err := karmada.Get(ctx, request.NamespacedName, stored); err != nil {
		return err
	}
	stored.Spec, stored.Generation = newQuota(assignments...).Spec, stored.Generation+1
	return karmada.Update(ctx, stored)
}

// runUntilSettled runs passes and removes the finalizers of deleted Works, as the execution controller
// does.
func runUntilSettled(t *testing.T, r *reconciler, store client.Client) {
	t.Helper()
	for range 3 {
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if err := finalizeWorks(t.Context(), store); err != nil {
			t.Fatal(err)
		}
	}
}

func finalizeWorks(ctx context.Context, store client.Client) error {
	works := &workv1alpha1.WorkList{}
	if err := store.List(ctx, works); err != nil {
		return err
	}
	for i := range works.Items {
		if each := &works.Items[i]; each.DeletionTimestamp != nil {
			each.Finalizers = nil
			if err := store.Update(ctx, each); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestStaleCacheDeletesNothing requires that Works are kept as long as the API server does not confirm
// what the cache shows.
func TestStaleCacheDeletesNothing(t *testing.T) {
	older, changed := newQuota("m2=3"), newQuota("m2=3")
	older.UID, changed.Generation = "older", 7
	stored := newStore(t, newQuota("m1=4"))
	cases := map[string]struct {
		cached *policyv1alpha1.FederatedResourceQuota
		live   client.Reader
	}{
		"the cache lacks the quota":            {nil, stored},
		"the cache has another specification":  {changed, stored},
		"the cache has an earlier quota":       {older, stored},
		"the cache has a quota that is gone":   {newQuota("m2=3"), newStore(t)},
		"the API server cannot read the quota": {nil, brokenReader{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store := newStore(t, newQuota("m1=4"), newCluster("m1"))
			r := newReconciler(store)
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			works, err := r.listWorks(t.Context(), request.NamespacedName)
			if err != nil || len(works) != 1 {
				t.Fatalf("%d Works, %v", len(works), err)
			}
			r.live = tc.live
			if err := r.deleteWorks(t.Context(), request.NamespacedName, tc.cached, works); err == nil {
				t.Error("the unconfirmed deletion caused no error")
			}
			if remaining, _ := r.listWorks(t.Context(), request.NamespacedName); len(remaining) != 1 || remaining[0].DeletionTimestamp != nil {
				t.Errorf("a Work was deleted: %v", remaining)
			}
		})
	}
}

var errBroken = errors.New("the connection is broken")

// brokenReader is a client whose requests fail.
type brokenReader struct{}

func (brokenReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errBroken
}

func (brokenReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errBroken
}

func TestResourceQuotaOfAPolicyIsNotChanged(t *testing.T) {
	store := newStore(t, newQuota("m1=4"), newCluster("m1"))
	r := newReconciler(store)
	desired, err := renderWork(newQuota("m1=4"), newCluster("m1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	desired.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "binding"
	if err := store.Create(t.Context(), desired); err != nil {
		t.Fatal(err)
	}
	_, err = r.Reconcile(t.Context(), request)
	if err == nil || !strings.Contains(err.Error(), "cluster m1: a policy already propagates a ResourceQuota shop/team") {
		t.Errorf("got %v, want an error that names the ResourceQuota", err)
	}
	stored := &workv1alpha1.Work{}
	if err := store.Get(t.Context(), client.ObjectKeyFromObject(desired), stored); err != nil || stored.ResourceVersion != desired.ResourceVersion {
		t.Errorf("the Work of the policy was changed: %v", err)
	}
}

func TestSyncSurvivesCrashesAroundWrites(t *testing.T) {
	looptest.CrashCase{
		NewStore: func() client.WithWatch {
			return newStore(t, newQuota("m1=4", "m2=3"), newCluster("m1"), newCluster("m2"))
		},
		NewLoop: func(karmada, others client.WithWatch) func(context.Context) error {
			r := newReconciler(karmada)
			return func(ctx context.Context) error {
				_, err := r.Reconcile(ctx, request)
				if err == nil {
					err = finalizeWorks(ctx, others)
				}
				return err
			}
		},
		FinalState: func(ctx context.Context, from client.Reader) (string, error) {
			works, err := describeWorks(ctx, from)
			return strings.Join(works, "\n"), err
		},
	}.Run(t)
}

func TestTriggers(t *testing.T) {
	rendered, err := renderWork(newQuota("m1=4"), newCluster("m1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := rendered.DeepCopy()
	changed.Generation = 2
	other := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "other"}}
	cases := map[string]struct {
		send func(context.Context, *reconciler, queue)
		want int
	}{
		"a new cluster with an assignment": {func(ctx context.Context, r *reconciler, q queue) {
			r.newClusterHandler().Create(ctx, event.CreateEvent{Object: newCluster("m1")}, q)
		}, 1},
		"a new cluster without an assignment": {func(ctx context.Context, r *reconciler, q queue) {
			r.newClusterHandler().Create(ctx, event.CreateEvent{Object: newCluster("m9")}, q)
		}, 0},
		"a Work that exists at the start": {func(ctx context.Context, r *reconciler, q queue) {
			r.newWorkHandler().Create(ctx, event.CreateEvent{Object: rendered, IsInInitialList: true}, q)
		}, 1},
		"a Work that this controller created": {func(ctx context.Context, r *reconciler, q queue) {
			r.newWorkHandler().Create(ctx, event.CreateEvent{Object: rendered}, q)
		}, 0},
		"a changed Work": {func(ctx context.Context, r *reconciler, q queue) {
			r.newWorkHandler().Update(ctx, event.UpdateEvent{ObjectOld: rendered, ObjectNew: changed}, q)
		}, 1},
		"a reported status": {func(ctx context.Context, r *reconciler, q queue) {
			r.newWorkHandler().Update(ctx, event.UpdateEvent{ObjectOld: rendered, ObjectNew: rendered}, q)
		}, 0},
		"a deleted Work": {func(ctx context.Context, r *reconciler, q queue) {
			r.newWorkHandler().Delete(ctx, event.DeleteEvent{Object: rendered}, q)
		}, 1},
		"a Work of another owner": {func(ctx context.Context, r *reconciler, q queue) {
			r.newWorkHandler().Delete(ctx, event.DeleteEvent{Object: other}, q)
		}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			tc.send(t.Context(), newReconciler(newStore(t, newQuota("m1=4"))), q)
			if q.Len() != tc.want {
				t.Errorf("%d quotas are queued, want %d", q.Len(), tc.want)
			}
		})
	}
}
