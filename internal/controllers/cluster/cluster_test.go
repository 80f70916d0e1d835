package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	"karmada.io/karmada/internal/access/observe"
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
			r := &reconciler{
				options: DefaultOptions(), karmada: karmada, live: karmada, now: time.Now,
				events: observe.NewEvents(record.NewFakeRecorder(10)),
			}
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
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAClusterLeavesAsSoonAsItsExecutionSpaceIsGone(t *testing.T) {
	leaving := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Name: "member1", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer},
	}}
	karmada := store(t, leaving, namespace("karmada-es-member1"))
	if err := karmada.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	r := &reconciler{
		options: DefaultOptions(), karmada: karmada, live: karmada, now: time.Now,
		events: observe.NewEvents(record.NewFakeRecorder(10)),
	}
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(leaving)}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if err := karmada.Get(t.Context(), request.NamespacedName, leaving); !apierrors.IsNotFound(err) {
		t.Errorf("the cluster is still there: %v", err)
	}
}

func store(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	for _, bound := range bindings() {
		builder = builder.WithIndex(bound, targetIndex, targets)
	}
	return builder.Build()
}
