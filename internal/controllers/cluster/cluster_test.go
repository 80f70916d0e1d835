package cluster

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

func newNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestDeletedExecutionNamespaceIsRecreated(t *testing.T) {
	tests := map[string]struct {
		deleted string
		want    string
	}{
		"the execution namespace of a cluster":          {"karmada-es-member1", "karmada-es-member1"},
		"the execution namespace of an unknown cluster": {"karmada-es-unknown", ""},
		"any other namespace":                           {"shop", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			karmada := newStore(t, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "member1"}})
			r := newReconciler(karmada)
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			newExecutionNamespaceHandler().Delete(t.Context(), event.DeleteEvent{Object: newNamespace(tc.deleted)}, q)
			for q.Len() > 0 {
				request, _ := q.Get()
				if _, err := r.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
				q.Done(request)
			}
			stored := &corev1.NamespaceList{}
			if err := karmada.List(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
			var got string
			for _, each := range stored.Items {
				got += each.Name
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamespacesInDeletionAreEnqueuedAtTheStart(t *testing.T) {
	tests := map[string]struct {
		existing client.Object
		want     int
	}{
		"an execution namespace in deletion": {inDeletion(newNamespace("karmada-es-member1")), 1},
		"an execution namespace":             {newNamespace("karmada-es-member1"), 0},
		"another namespace in deletion":      {inDeletion(newNamespace("shop")), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			newExecutionNamespaceHandler().Create(t.Context(), event.CreateEvent{Object: tc.existing, IsInInitialList: true}, q)
			if q.Len() != tc.want {
				t.Errorf("%d clusters are enqueued, want %d", q.Len(), tc.want)
			}
		})
	}
}

func newReconciler(karmada client.Client) *reconciler {
	return &reconciler{
		options: DefaultOptions(), karmada: karmada, live: karmada, now: time.Now,
		events: loop.NewEvents(record.NewFakeRecorder(10)),
	}
}

// newWork returns a delivered Work. If deleting is set, the Work is being deleted.
func newWork(cluster, name string, deleting bool) *workv1alpha1.Work {
	created := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-" + cluster, Name: name, Finalizers: []string{workv1alpha1.ExecutionFinalizer},
	}}
	if deleting {
		created.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	}
	return created
}

func inDeletion(object client.Object) client.Object {
	object.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	return withFinalizer(object)
}

// withFinalizer adds a finalizer to an object, so that a deletion of the object does not finish.
func withFinalizer(object client.Object) client.Object {
	object.SetFinalizers(append(object.GetFinalizers(), "test/stays"))
	return object
}

// withSystemLabel adds the label that the controller adds to its namespaces.
func withSystemLabel(object client.Object) client.Object {
	object.SetLabels(map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue})
	return object
}

// withCreationTimeNow sets the creation time to now.
func withCreationTimeNow(object client.Object) client.Object {
	object.SetCreationTimestamp(metav1.Now())
	return object
}

func TestClusterIsRemovedWhenNothingIsLeft(t *testing.T) {
	ready := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: status}}
	}
	tests := map[string]struct {
		mode   clusterv1alpha1.ClusterSyncMode
		ready  metav1.ConditionStatus
		stored []client.Object
		// worksLeft are the remaining Works. deleted is true if the Cluster is deleted afterwards.
		worksLeft []string
		deleted   bool
	}{
		"the namespace is deleted": {deleted: true},
		"an empty namespace in deletion is not waited for": {
			stored: []client.Object{inDeletion(newNamespace("karmada-es-member1"))}, deleted: true},
		"Works are deleted and waited for": {ready: metav1.ConditionTrue,
			stored:    []client.Object{withFinalizer(newNamespace("karmada-es-member1")), newWork("member1", "web", false), newWork("member2", "web", false)},
			worksLeft: []string{"karmada-es-member1/web in deletion", "karmada-es-member2/web"}},
		"a lost push mode cluster keeps its Works": {ready: metav1.ConditionFalse,
			stored:    []client.Object{inDeletion(newNamespace("karmada-es-member1")), newWork("member1", "web", true)},
			worksLeft: []string{"karmada-es-member1/web in deletion"}},
		"Works of a cluster with a lost agent are released": {mode: clusterv1alpha1.Pull, ready: metav1.ConditionUnknown,
			stored:    []client.Object{inDeletion(newNamespace("karmada-es-member1")), newWork("member1", "web", true), newWork("member2", "web", false)},
			worksLeft: []string{"karmada-es-member2/web"}, deleted: true},
		"Works of a cluster with a running agent are left to the agent": {mode: clusterv1alpha1.Pull, ready: metav1.ConditionTrue,
			stored:    []client.Object{inDeletion(newNamespace("karmada-es-member1")), newWork("member1", "web", true)},
			worksLeft: []string{"karmada-es-member1/web in deletion"}},
		"a binding with a scheduler still lists the cluster": {
			stored: []client.Object{&workv1alpha2.ResourceBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{workv1alpha2.BindingManagedByLabel: "me"}},
				Spec:       workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "member1"}}},
			}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			leaving := &clusterv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "member1", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}},
				Spec:       clusterv1alpha1.ClusterSpec{SyncMode: cmp.Or(tc.mode, clusterv1alpha1.Push)},
				Status:     clusterv1alpha1.ClusterStatus{Conditions: ready(tc.ready)},
			}
			karmada := newStore(t, append(tc.stored, leaving)...)
			if err := karmada.Delete(t.Context(), leaving); err != nil {
				t.Fatal(err)
			}
			request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(leaving)}
			// The first pass starts deletions, and the second pass reads their results.
			for range 2 {
				if _, err := newReconciler(karmada).Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
			err := karmada.Get(t.Context(), request.NamespacedName, leaving)
			if deleted := apierrors.IsNotFound(err); deleted != tc.deleted {
				t.Errorf("deleted = %v, want %v (%v)", deleted, tc.deleted, err)
			}
			if diff := gocmp.Diff(tc.worksLeft, listWorks(t, karmada), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Works (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckWorksReadsTheAPIServerIfTheCacheIsEmpty(t *testing.T) {
	r := newReconciler(newStore(t))
	r.live = newStore(t, newWork("member1", "web", false))
	notInDeletion, hasWorks, err := r.findWorks(t.Context(), "member1")
	if err != nil || !notInDeletion || !hasWorks {
		t.Errorf("staying %t, left %t, error %v", notInDeletion, hasWorks, err)
	}
}

func TestOrderOfWorksAndExecutionNamespaceInARemoval(t *testing.T) {
	tests := map[string]struct {
		mode       clusterv1alpha1.ClusterSyncMode
		works      []client.Object
		inDeletion bool
	}{
		"at once if the control plane releases the Works": {
			mode: clusterv1alpha1.Push, works: []client.Object{newWork("member1", "web", false)}, inDeletion: true},
		"not while an agent, whose roles are in it, releases Works": {
			mode: clusterv1alpha1.Pull, works: []client.Object{newWork("member1", "web", false)}},
		"after the agent has released all Works": {mode: clusterv1alpha1.Pull, inDeletion: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			leaving := &clusterv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "member1", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}, DeletionTimestamp: &metav1.Time{Time: time.Now()}},
				Spec:       clusterv1alpha1.ClusterSpec{SyncMode: tc.mode},
				Status:     clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}},
			}
			executionNamespace := withFinalizer(newNamespace("karmada-es-member1"))
			karmada := newStore(t, append(tc.works, leaving, executionNamespace)...)
			for range 2 {
				if _, err := newReconciler(karmada).Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(leaving)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(executionNamespace), executionNamespace); err != nil {
				t.Fatal(err)
			}
			if deleting := executionNamespace.GetDeletionTimestamp() != nil; deleting != tc.inDeletion {
				t.Errorf("the namespace is being deleted: %t, want %t", deleting, tc.inDeletion)
			}
		})
	}
}

func listWorks(t *testing.T, karmada client.Client) []string {
	t.Helper()
	list := &workv1alpha1.WorkList{}
	if err := karmada.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var works []string
	for _, item := range list.Items {
		text := item.Namespace + "/" + item.Name
		if item.DeletionTimestamp != nil {
			text += " in deletion"
		}
		works = append(works, text)
	}
	return works
}

func TestLeftoversOfADeletedClusterAreCleanedUp(t *testing.T) {
	tests := map[string]struct {
		stored    []client.Object
		worksLeft []string
	}{
		"Works in a namespace in deletion": {
			stored: []client.Object{inDeletion(newNamespace("karmada-es-member1")), newWork("member1", "web", true)}},
		"Works in a namespace of this controller": {
			stored: []client.Object{withSystemLabel(withFinalizer(newNamespace("karmada-es-member1"))), newWork("member1", "web", true)}},
		"a recently created namespace is kept": {
			stored:    []client.Object{withCreationTimeNow(withSystemLabel(newNamespace("karmada-es-member1"))), newWork("member1", "web", true)},
			worksLeft: []string{"karmada-es-member1/web in deletion"}},
		"a namespace of another creator is kept": {
			stored:    []client.Object{newNamespace("karmada-es-member1"), newWork("member1", "web", true)},
			worksLeft: []string{"karmada-es-member1/web in deletion"}},
		"Works of another cluster are kept": {
			stored:    []client.Object{inDeletion(newNamespace("karmada-es-member1")), newWork("member2", "web", true)},
			worksLeft: []string{"karmada-es-member2/web in deletion"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			karmada := newStore(t, tc.stored...)
			request := reconcile.Request{NamespacedName: client.ObjectKey{Name: "member1"}}
			if _, err := newReconciler(karmada).Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if deleting := isNamespaceInDeletion(t, karmada, "karmada-es-member1"); deleting != (tc.worksLeft == nil || name == "Works of another cluster are kept") {
				t.Errorf("the namespace is being deleted: %t", deleting)
			}
			if diff := gocmp.Diff(tc.worksLeft, listWorks(t, karmada), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Works (-want +got):\n%s", diff)
			}
		})
	}
}

func isNamespaceInDeletion(t *testing.T, karmada client.Client, name string) bool {
	t.Helper()
	executionNamespace := newNamespace(name)
	if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(executionNamespace), executionNamespace); err != nil {
		t.Fatal(err)
	}
	return executionNamespace.DeletionTimestamp != nil
}

func newStore(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&clusterv1alpha1.Cluster{}, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{})
	if err := loop.AddIndexes(looptest.Indexer{ClientBuilder: builder}, loop.BindingsByCluster); err != nil {
		t.Fatal(err)
	}
	return builder.Build()
}
