package agentcsrapproving

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

// A cluster joins in push mode after the decision, but before the agent gets its ClusterRole.
func TestNameTakenAfterDecisionIsReleased(t *testing.T) {
	request := newRequest(t, "east-1", "east")
	inner := newControlPlane(t, request)
	karmada := interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, ok := object.(*rbacv1.ClusterRole); ok {
				joined := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
				if err := inner.Create(ctx, joined); err != nil {
					return err
				}
			}
			return api.Create(ctx, object, options...)
		},
	})
	if err := reconcileUntilStable(newReconciler(karmada), item{request: request.Name}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"AgentNotApproved ClusterExists"}, listConditions(t, karmada, request.Name)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	for _, right := range agent.RBACObjects("east", clusterv1alpha1.NamespaceKarmadaCluster) {
		if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(right), right); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("%T %s exists: %v", right, right.GetName(), err)
		}
	}
}

func TestReservedNameIsNotGranted(t *testing.T) {
	reservation := newManagedRole()
	reservation.Labels, reservation.Annotations = nil, map[string]string{clusterv1alpha1.AgentRequestAnnotation: clusterv1alpha1.NameReservation}
	request := newRequest(t, "east-1", "east")
	karmada := newControlPlane(t, request, reservation)
	if err := reconcileUntilStable(newReconciler(karmada), item{request: request.Name}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"AgentNotApproved ClusterExists"}, listConditions(t, karmada, request.Name)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// GeneratorUser may have created the bindings before the cluster joined in push mode.
func TestBindingsOfAgentsAreDeletedForPushClusters(t *testing.T) {
	joined := newPullCluster()
	joined.Spec.SyncMode = clusterv1alpha1.Push
	objects := []client.Object{joined}
	for _, binding := range agent.Bindings("east", clusterv1alpha1.NamespaceKarmadaCluster) {
		objects = append(objects, binding)
	}
	other := agent.Bindings("east", clusterv1alpha1.NamespaceKarmadaCluster)[1].(*rbacv1.RoleBinding)
	other.Namespace, other.Subjects = "karmada-es-east", []rbacv1.Subject{{Kind: "User", Name: "admin"}}
	objects = append(objects, other)
	karmada := newControlPlane(t, objects...)
	if err := reconcileUntilStable(newReconciler(karmada), item{cluster: "east"}); err != nil {
		t.Fatal(err)
	}
	for _, binding := range agent.Bindings("east", clusterv1alpha1.NamespaceKarmadaCluster) {
		if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(binding), binding); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("%T %s exists: %v", binding, binding.GetName(), err)
		}
	}
	if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
		t.Errorf("the binding of another user: %v", err)
	}
}
