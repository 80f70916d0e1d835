package agentcsrapproving

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/work"
)

// agentAnnotations are the annotations that identify the agent of cluster east.
var agentAnnotations = map[string]string{
	clusterv1alpha1.AgentRequestAnnotation: "1", clusterv1alpha1.AgentRequesterAnnotation: "system:bootstrap:abcdef", clusterv1alpha1.ClusterNamespaceAnnotation: "clusters",
}

func newPullCluster() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "cluster"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
}

// newRegistration returns a control plane in which the cluster east has an agent with all permissions.
func newRegistration(t *testing.T) (client.WithWatch, *reconciler) {
	t.Helper()
	role := newManagedRole()
	role.Annotations = agentAnnotations
	karmada := newControlPlane(t, newPullCluster(), role)
	r := newReconciler(karmada)
	if err := reconcileUntilStable(r, item{cluster: "east"}); err != nil {
		t.Fatal(err)
	}
	return karmada, r
}

// deletePermissions deletes all of the agent's roles, as the garbage collector does after the agent's
// ClusterRole was deleted.
func deletePermissions(t *testing.T, karmada client.Client) {
	t.Helper()
	for _, right := range agent.RBACObjects("east", "clusters") {
		if err := karmada.Delete(t.Context(), right); err != nil {
			t.Fatal(err)
		}
	}
}

// setMode stores the Cluster's sync mode and runs the controller.
func setMode(t *testing.T, karmada client.Client, r *reconciler, mode clusterv1alpha1.ClusterSyncMode) {
	t.Helper()
	cluster := newPullCluster()
	if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Spec.SyncMode = mode
	if err := karmada.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if err := reconcileUntilStable(r, item{cluster: "east"}); err != nil {
		t.Fatal(err)
	}
}

func TestDeletedPermissionsAreRestoredForTheSameClusterOnly(t *testing.T) {
	tests := map[string]struct {
		between  func(t *testing.T, karmada client.Client, r *reconciler)
		restored bool
	}{
		"the same Cluster": {func(*testing.T, client.Client, *reconciler) {}, true},
		"a deleted Cluster": {func(t *testing.T, karmada client.Client, _ *reconciler) {
			if err := karmada.Delete(t.Context(), newPullCluster()); err != nil {
				t.Fatal(err)
			}
		}, false},
		"a later Cluster of the same name": {func(t *testing.T, karmada client.Client, _ *reconciler) {
			if err := karmada.Delete(t.Context(), newPullCluster()); err != nil {
				t.Fatal(err)
			}
			if err := karmada.Create(t.Context(), newPullCluster()); err != nil {
				t.Fatal(err)
			}
		}, false},
		"a Cluster that changed to push mode": {func(t *testing.T, karmada client.Client, r *reconciler) {
			setMode(t, karmada, r, clusterv1alpha1.Push)
		}, false},
		"a Cluster that was in push mode in between": {func(t *testing.T, karmada client.Client, r *reconciler) {
			setMode(t, karmada, r, clusterv1alpha1.Push)
			setMode(t, karmada, r, clusterv1alpha1.Pull)
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmada, r := newRegistration(t)
			deletePermissions(t, karmada)
			test.between(t, karmada, r)
			if err := reconcileUntilStable(r, item{cluster: "east"}); err != nil {
				t.Fatal(err)
			}
			for _, right := range agent.RBACObjects("east", "clusters") {
				if strings.HasSuffix(right.GetName(), "-epoch") {
					continue // every agent of a Cluster in pull mode reads the epoch
				}
				err := karmada.Get(t.Context(), client.ObjectKeyFromObject(right), right)
				if client.IgnoreNotFound(err) != nil || (err == nil) != test.restored {
					t.Errorf("reading %T %s: %v, want it restored: %t", right, right.GetName(), err, test.restored)
				}
				if role, ok := right.(*rbacv1.ClusterRole); ok && test.restored {
					if diff := cmp.Diff(agentAnnotations, role.Annotations); diff != "" {
						t.Errorf("annotations about the agent (-want +got):\n%s", diff)
					}
				}
			}
		})
	}
}

func TestPermissionsOfAnEarlierClusterAreNotRestored(t *testing.T) {
	earlier := newManagedRole(metav1.OwnerReference{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster", Name: "east", UID: "earlier"})
	karmada := newControlPlane(t, newPullCluster(), earlier)
	if err := reconcileUntilStable(newReconciler(karmada), item{cluster: "east"}); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(earlier), role); err != nil {
		t.Fatal(err)
	}
	if len(role.Rules) > 0 || role.OwnerReferences[0].UID != "earlier" {
		t.Errorf("the role was assigned to a later Cluster: %v", role)
	}
}

func TestRecordIsWrittenOnce(t *testing.T) {
	karmada, r := newRegistration(t)
	executionNamespace := &corev1.Namespace{}
	read := func() {
		if err := karmada.Get(t.Context(), client.ObjectKey{Name: work.ExecutionNamespace("east")}, executionNamespace); err != nil {
			t.Fatal(err)
		}
	}
	read()
	want := map[string]string{
		clusterv1alpha1.AgentRecordClusterAnnotation: "cluster", clusterv1alpha1.AgentRecordRequestAnnotation: "1",
		clusterv1alpha1.AgentRecordRequesterAnnotation: "system:bootstrap:abcdef", clusterv1alpha1.ClusterNamespaceAnnotation: "clusters",
		workv1alpha1.DeletionVerdictsAnnotation: workv1alpha1.DeletionVerdictsRequired,
	}
	if diff := cmp.Diff(want, executionNamespace.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	before := executionNamespace.ResourceVersion
	if err := reconcileUntilStable(r, item{cluster: "east"}); err != nil {
		t.Fatal(err)
	}
	if read(); executionNamespace.ResourceVersion != before {
		t.Errorf("the namespace was written again")
	}
}

func TestRenewalDoesNotRestorePermissions(t *testing.T) {
	tests := map[string]struct {
		mode clusterv1alpha1.ClusterSyncMode
		want string
	}{
		"a pull mode Cluster without permissions of the agent": {clusterv1alpha1.Pull, "Approved AutoApproved"},
		"a Cluster joined in push mode under the name":         {clusterv1alpha1.Push, "AgentNotApproved ClusterNotRegistered"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster, request := newPullCluster(), newRequest(t, "renewal", "east")
			cluster.Spec.SyncMode, request.Spec.Username = test.mode, agent.User("east")
			karmada := newControlPlane(t, cluster, request)
			if err := reconcileUntilStable(newReconciler(karmada), item{request: "renewal"}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{test.want}, listConditions(t, karmada, "renewal")); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			err := karmada.Get(t.Context(), client.ObjectKey{Name: agent.RoleName("east")}, &rbacv1.ClusterRole{})
			if err == nil || client.IgnoreNotFound(err) != nil {
				t.Errorf("reading the ClusterRole: %v, want none", err)
			}
		})
	}
}
