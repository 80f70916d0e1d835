package agentcsrapproving

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

// identity is who the agent of east is.
var identity = map[string]string{
	agent.RequestAnnotation: "1", agent.RequesterAnnotation: "system:bootstrap:abcdef", agent.ClusterNamespaceAnnotation: "clusters",
}

func pulledCluster() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "cluster"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
}

// registered is a control plane in which east has an agent with all its rights.
func registered(t *testing.T) (client.WithWatch, *reconciler) {
	t.Helper()
	role := managedRole()
	role.Annotations = identity
	karmada := stored(t, pulledCluster(), role)
	r := reconcilerOf(karmada)
	if err := settle(r, item{cluster: "east"}); err != nil {
		t.Fatal(err)
	}
	return karmada, r
}

// loseRights deletes all the roles of the agent, as the garbage collector does when
// its ClusterRole was deleted.
func loseRights(t *testing.T, karmada client.Client) {
	t.Helper()
	for _, right := range agent.Rights("east", "clusters") {
		if err := karmada.Delete(t.Context(), right); err != nil {
			t.Fatal(err)
		}
	}
}

// setMode stores the mode of the Cluster and lets the controller see it.
func setMode(t *testing.T, karmada client.Client, r *reconciler, mode clusterv1alpha1.ClusterSyncMode) {
	t.Helper()
	cluster := pulledCluster()
	if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Spec.SyncMode = mode
	if err := karmada.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if err := settle(r, item{cluster: "east"}); err != nil {
		t.Fatal(err)
	}
}

func TestRightsThatWereLostTogetherComeBackForTheSameClusterOnly(t *testing.T) {
	tests := map[string]struct {
		between func(t *testing.T, karmada client.Client, r *reconciler)
		back    bool
	}{
		"the Cluster that they were for": {func(*testing.T, client.Client, *reconciler) {}, true},
		"the Cluster is gone": {func(t *testing.T, karmada client.Client, _ *reconciler) {
			if err := karmada.Delete(t.Context(), pulledCluster()); err != nil {
				t.Fatal(err)
			}
		}, false},
		"a later Cluster of that name": {func(t *testing.T, karmada client.Client, _ *reconciler) {
			if err := karmada.Delete(t.Context(), pulledCluster()); err != nil {
				t.Fatal(err)
			}
			if err := karmada.Create(t.Context(), pulledCluster()); err != nil {
				t.Fatal(err)
			}
		}, false},
		"a Cluster without an agent by now": {func(t *testing.T, karmada client.Client, r *reconciler) {
			setMode(t, karmada, r, clusterv1alpha1.Push)
		}, false},
		"a Cluster that was without an agent in between": {func(t *testing.T, karmada client.Client, r *reconciler) {
			setMode(t, karmada, r, clusterv1alpha1.Push)
			setMode(t, karmada, r, clusterv1alpha1.Pull)
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmada, r := registered(t)
			loseRights(t, karmada)
			test.between(t, karmada, r)
			if err := settle(r, item{cluster: "east"}); err != nil {
				t.Fatal(err)
			}
			for _, right := range agent.Rights("east", "clusters") {
				err := karmada.Get(t.Context(), client.ObjectKeyFromObject(right), right)
				if client.IgnoreNotFound(err) != nil || (err == nil) != test.back {
					t.Errorf("reading %T %s: %v, want that it is there: %t", right, right.GetName(), err, test.back)
				}
				if role, ok := right.(*rbacv1.ClusterRole); ok && test.back {
					if diff := cmp.Diff(identity, role.Annotations); diff != "" {
						t.Errorf("who the agent is (-want +got):\n%s", diff)
					}
				}
			}
		})
	}
}

func TestRightsOfAnEarlierClusterAreLeftToTheGarbageCollector(t *testing.T) {
	earlier := managedRole(metav1.OwnerReference{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster", Name: "east", UID: "earlier"})
	karmada := stored(t, pulledCluster(), earlier)
	if err := settle(reconcilerOf(karmada), item{cluster: "east"}); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(earlier), role); err != nil {
		t.Fatal(err)
	}
	if len(role.Rules) > 0 || role.OwnerReferences[0].UID != "earlier" {
		t.Errorf("it was made the role of a later Cluster: %v", role)
	}
}

func TestTheRecordIsWrittenOnceAndMakesNoNamespaceARegistrations(t *testing.T) {
	karmada, r := registered(t)
	space := &corev1.Namespace{}
	read := func() {
		if err := karmada.Get(t.Context(), client.ObjectKey{Name: agent.ExecutionNamespace("east")}, space); err != nil {
			t.Fatal(err)
		}
	}
	read()
	want := map[string]string{
		agent.RecordClusterAnnotation: "cluster", agent.RecordRequestAnnotation: "1",
		agent.RecordRequesterAnnotation: "system:bootstrap:abcdef", agent.ClusterNamespaceAnnotation: "clusters",
		workv1alpha1.DeletionVerdictsAnnotation: workv1alpha1.DeletionVerdictsRequired,
	}
	if diff := cmp.Diff(want, space.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	before := space.ResourceVersion
	if err := settle(r, item{cluster: "east"}); err != nil {
		t.Fatal(err)
	}
	if read(); space.ResourceVersion != before {
		t.Errorf("the namespace was written again")
	}
}

func TestARenewalGivesNoRightsBack(t *testing.T) {
	tests := map[string]struct {
		mode clusterv1alpha1.ClusterSyncMode
		want string
	}{
		"a Cluster in Pull mode that the agent has no rights for": {clusterv1alpha1.Pull, "Approved AutoApproved"},
		"a Cluster that somebody joined under the name":           {clusterv1alpha1.Push, "AgentNotApproved ClusterNotRegistered"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster, request := pulledCluster(), requestOf(t, "renewal", "east")
			cluster.Spec.SyncMode, request.Spec.Username = test.mode, agent.User("east")
			karmada := stored(t, cluster, request)
			if err := settle(reconcilerOf(karmada), item{request: "renewal"}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{test.want}, conditionsOf(t, karmada, "renewal")); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			err := karmada.Get(t.Context(), client.ObjectKey{Name: agent.RoleName("east")}, &rbacv1.ClusterRole{})
			if err == nil || client.IgnoreNotFound(err) != nil {
				t.Errorf("reading its ClusterRole: %v, want that there is none", err)
			}
		})
	}
}
