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
	"karmada.io/karmada/internal/access/bindings"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/domain/binding"
)

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestAnExecutionSpaceThatSomebodyDeletesComesBackAtOnce(t *testing.T) {
	tests := map[string]struct {
		deleted string
		want    string
	}{
		"the space of a cluster":                   {"karmada-es-member1", "karmada-es-member1"},
		"the space of a cluster that is not there": {"karmada-es-stranger", ""},
		"any other namespace":                      {"shop", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			karmada := store(t, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "member1"}})
			r := reconcilerOver(karmada)
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			onExecutionSpace().Delete(t.Context(), event.DeleteEvent{Object: namespace(tc.deleted)}, q)
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

func TestASpaceThatBeganToGoBeforeTheStartIsLookedAt(t *testing.T) {
	tests := map[string]struct {
		there client.Object
		want  int
	}{
		"one that goes":           {going(namespace("karmada-es-member1")), 1},
		"one that stays":          {namespace("karmada-es-member1"), 0},
		"any other one that goes": {going(namespace("shop")), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			onExecutionSpace().Create(t.Context(), event.CreateEvent{Object: tc.there, IsInInitialList: true}, q)
			if q.Len() != tc.want {
				t.Errorf("%d clusters are looked at, want %d", q.Len(), tc.want)
			}
		})
	}
}

func reconcilerOver(karmada client.Client) *reconciler {
	return &reconciler{
		options: DefaultOptions(), karmada: karmada, live: karmada, now: time.Now,
		events: observe.NewEvents(record.NewFakeRecorder(10)),
	}
}

// workOf is a Work that is delivered; going tells that it is being deleted.
func workOf(cluster, name string, going bool) *workv1alpha1.Work {
	of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-" + cluster, Name: name, Finalizers: []string{workv1alpha1.ExecutionFinalizer},
	}}
	if going {
		of.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	}
	return of
}

func going(object client.Object) client.Object {
	object.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	return staying(object)
}

// staying is an object that is not gone as soon as it is deleted.
func staying(object client.Object) client.Object {
	object.SetFinalizers(append(object.GetFinalizers(), "test/stays"))
	return object
}

// labelled is a namespace as the controller makes it.
func labelled(object client.Object) client.Object {
	object.SetLabels(map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue})
	return object
}

// createdNow is an object that was made a moment ago.
func createdNow(object client.Object) client.Object {
	object.SetCreationTimestamp(metav1.Now())
	return object
}

func TestAClusterLeavesWhenNothingOfItIsLeft(t *testing.T) {
	ready := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: status}}
	}
	tests := map[string]struct {
		mode   clusterv1alpha1.ClusterSyncMode
		ready  metav1.ConditionStatus
		stored []client.Object
		// left are the Works with their finalizer, gone tells that the cluster is.
		left []string
		gone bool
	}{
		"its namespace is gone": {gone: true},
		"its namespace is empty and goes in its own time": {
			stored: []client.Object{going(namespace("karmada-es-member1"))}, gone: true},
		"its Works are deleted and waited for": {ready: metav1.ConditionTrue,
			stored: []client.Object{staying(namespace("karmada-es-member1")), workOf("member1", "web", false), workOf("member2", "web", false)},
			left:   []string{"karmada-es-member1/web going", "karmada-es-member2/web"}},
		"the Works of a lost one that is pushed to are let go by who delivers them": {ready: metav1.ConditionFalse,
			stored: []client.Object{going(namespace("karmada-es-member1")), workOf("member1", "web", true)},
			left:   []string{"karmada-es-member1/web going"}},
		"the Works of one whose agent is lost are let go": {mode: clusterv1alpha1.Pull, ready: metav1.ConditionUnknown,
			stored: []client.Object{going(namespace("karmada-es-member1")), workOf("member1", "web", true), workOf("member2", "web", false)},
			left:   []string{"karmada-es-member2/web"}, gone: true},
		"the Works of one whose agent works are left to it": {mode: clusterv1alpha1.Pull, ready: metav1.ConditionTrue,
			stored: []client.Object{going(namespace("karmada-es-member1")), workOf("member1", "web", true)},
			left:   []string{"karmada-es-member1/web going"}},
		"a binding still lists it that its scheduler takes care of": {
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
			karmada := store(t, append(tc.stored, leaving)...)
			if err := karmada.Delete(t.Context(), leaving); err != nil {
				t.Fatal(err)
			}
			request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(leaving)}
			// One pass begins, the next one finds what is left.
			for range 2 {
				if _, err := reconcilerOver(karmada).Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
			err := karmada.Get(t.Context(), request.NamespacedName, leaving)
			if gone := apierrors.IsNotFound(err); gone != tc.gone {
				t.Errorf("gone = %v, want %v (%v)", gone, tc.gone, err)
			}
			if diff := gocmp.Diff(tc.left, worksIn(t, karmada), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Works (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNobodyBelievesACacheThatThereAreNoWorks(t *testing.T) {
	r := reconcilerOver(store(t))
	r.live = store(t, workOf("member1", "web", false))
	staying, left, err := r.worksOf(t.Context(), "member1")
	if err != nil || !staying || !left {
		t.Errorf("staying %t, left %t, error %v", staying, left, err)
	}
}

func TestTheExecutionSpaceGoesWhenNobodyNeedsIt(t *testing.T) {
	tests := map[string]struct {
		mode  clusterv1alpha1.ClusterSyncMode
		works []client.Object
		going bool
	}{
		"at once where the control plane lets go of the Works": {
			mode: clusterv1alpha1.Push, works: []client.Object{workOf("member1", "web", false)}, going: true},
		"not while an agent lets go of Works, whose rights are in it": {
			mode: clusterv1alpha1.Pull, works: []client.Object{workOf("member1", "web", false)}},
		"when the agent has let go of all": {mode: clusterv1alpha1.Pull, going: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			leaving := &clusterv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "member1", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}, DeletionTimestamp: &metav1.Time{Time: time.Now()}},
				Spec:       clusterv1alpha1.ClusterSpec{SyncMode: tc.mode},
				Status:     clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}},
			}
			space := staying(namespace("karmada-es-member1"))
			karmada := store(t, append(tc.works, leaving, space)...)
			for range 2 {
				if _, err := reconcilerOver(karmada).Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(leaving)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(space), space); err != nil {
				t.Fatal(err)
			}
			if going := space.GetDeletionTimestamp() != nil; going != tc.going {
				t.Errorf("the namespace is being deleted: %t, want %t", going, tc.going)
			}
		})
	}
}

func worksIn(t *testing.T, karmada client.Client) []string {
	t.Helper()
	works := &workv1alpha1.WorkList{}
	if err := karmada.List(t.Context(), works); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, of := range works.Items {
		text := of.Namespace + "/" + of.Name
		if of.DeletionTimestamp != nil {
			text += " going"
		}
		left = append(left, text)
	}
	return left
}

func TestWhatAClusterThatIsGoneHasLeftBehindIsLetGo(t *testing.T) {
	tests := map[string]struct {
		stored []client.Object
		left   []string
	}{
		"its Works in a namespace that goes": {
			stored: []client.Object{going(namespace("karmada-es-member1")), workOf("member1", "web", true)}},
		"its Works in a namespace that was made for it": {
			stored: []client.Object{labelled(staying(namespace("karmada-es-member1"))), workOf("member1", "web", true)}},
		"nothing in a namespace whose Cluster may still come": {
			stored: []client.Object{createdNow(labelled(namespace("karmada-es-member1"))), workOf("member1", "web", true)},
			left:   []string{"karmada-es-member1/web going"}},
		"nothing in a namespace that others made": {
			stored: []client.Object{namespace("karmada-es-member1"), workOf("member1", "web", true)},
			left:   []string{"karmada-es-member1/web going"}},
		"nothing of another cluster": {
			stored: []client.Object{going(namespace("karmada-es-member1")), workOf("member2", "web", true)},
			left:   []string{"karmada-es-member2/web going"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			karmada := store(t, tc.stored...)
			request := reconcile.Request{NamespacedName: client.ObjectKey{Name: "member1"}}
			if _, err := reconcilerOver(karmada).Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if going := deletedSpace(t, karmada, "karmada-es-member1"); going != (tc.left == nil || name == "nothing of another cluster") {
				t.Errorf("the namespace is being deleted: %t", going)
			}
			if diff := gocmp.Diff(tc.left, worksIn(t, karmada), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Works (-want +got):\n%s", diff)
			}
		})
	}
}

func deletedSpace(t *testing.T, karmada client.Client, name string) bool {
	t.Helper()
	space := namespace(name)
	if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(space), space); err != nil {
		t.Fatal(err)
	}
	return space.DeletionTimestamp != nil
}

func store(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&clusterv1alpha1.Cluster{}, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{})
	for _, namespaced := range []bool{true, false} {
		builder = builder.WithIndex(binding.New(namespaced), bindings.ClusterField, bindings.ClustersOf)
	}
	return builder.Build()
}
