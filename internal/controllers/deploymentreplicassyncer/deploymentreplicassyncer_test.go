package deploymentreplicassyncer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/access/watches/watchestest"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

func newDeployment(label string) *appsv1.Deployment {
	created := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	created.Labels = map[string]string{workv1alpha2.RetainReplicasLabel: label}
	created.Spec.Replicas, created.Status.Replicas = new(int32(4)), 6
	return created
}

// newBinding returns the binding of the Deployment in one cluster, which reports the given status.
func newBinding(status string) *workv1alpha2.ResourceBinding {
	created := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	created.Spec = workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, Replicas: 4,
		Clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 4}},
		Placement: &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided,
		}},
	}
	created.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: &runtime.RawExtension{Raw: []byte(status)}}}
	return created
}

func TestReconcile(t *testing.T) {
	tests := map[string]struct {
		objects      []client.Object
		wantReplicas int32
		wantRequeue  bool
	}{
		"the replicas of the members are copied":      {[]client.Object{newDeployment("true"), newBinding(`{"replicas":6}`)}, 6, false},
		"statuses that disagree are waited for":       {[]client.Object{newDeployment("true"), newBinding(`{"replicas":5}`)}, 4, true},
		"a Deployment without the mark is kept":       {[]client.Object{newDeployment("false"), newBinding(`{"replicas":6}`)}, 4, false},
		"a Deployment without a binding is kept":      {[]client.Object{newDeployment("true")}, 4, false},
		"a pass without a Deployment changes nothing": {[]client.Object{newBinding(`{"replicas":6}`)}, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := looptest.NewScheme(t, appsv1.AddToScheme, workv1alpha2.AddToScheme)
			store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.objects...).Build()
			r := &reconciler{karmada: store, manager: watchestest.NewManager(t.Context(), store)}
			subscription, err := r.manager.Subscribe(watches.ControlPlane, watches.Query{Kind: deploymentKind}, watches.Subscriber{})
			if err != nil || !subscription.WaitForList(t.Context()) {
				t.Fatalf("the Deployments are not listed: %v", err)
			}
			key := client.ObjectKey{Namespace: "shop", Name: "web"}
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if err != nil {
				t.Fatal(err)
			}
			stored := &appsv1.Deployment{}
			if err := store.Get(t.Context(), key, stored); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			var replicas int32
			if stored.Spec.Replicas != nil {
				replicas = *stored.Spec.Replicas
			}
			wantResult := reconcile.Result{}
			if test.wantRequeue {
				wantResult = loop.StaleResult()
			}
			if replicas != test.wantReplicas || !cmp.Equal(result, wantResult) {
				t.Errorf("replicas %d, result %+v; want %d, %+v", replicas, result, test.wantReplicas, wantResult)
			}
		})
	}
}

func TestBindingsEnqueueMarkedDeployments(t *testing.T) {
	tests := map[string]struct {
		label string
		want  int
	}{
		"the binding of a marked Deployment":            {"true", 1},
		"the binding of a Deployment without this mark": {"false", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := looptest.NewScheme(t, appsv1.AddToScheme, workv1alpha2.AddToScheme)
			store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(newDeployment(test.label)).Build()
			r := &reconciler{karmada: store, manager: watchestest.NewManager(t.Context(), store)}
			subscription, err := r.manager.Subscribe(watches.ControlPlane, watches.Query{Kind: deploymentKind}, watches.Subscriber{})
			if err != nil || !subscription.WaitForList(t.Context()) {
				t.Fatalf("the Deployments are not listed: %v", err)
			}
			q := loop.NewPriorityQueue("test", loop.NewRateLimiter[reconcile.Request](loop.Backoff{}))
			t.Cleanup(q.ShutDown)
			r.enqueueTemplate(q, newBinding(`{}`))
			if q.Len() != test.want {
				t.Errorf("%d queued requests, want %d", q.Len(), test.want)
			}
		})
	}
}
