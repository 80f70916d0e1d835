package agentcsrapproving

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

func TestExistingAgentsMayReadEpoch(t *testing.T) {
	foreign := newManagedRole()
	foreign.Labels, foreign.Annotations = nil, nil
	tests := map[string]struct {
		mode clusterv1alpha1.ClusterSyncMode
		role *rbacv1.ClusterRole
		// owner is the Role's owner, or empty if there is no Role.
		owner types.UID
	}{
		"an agent of this release":                 {mode: clusterv1alpha1.Pull, role: newManagedRole(), owner: "managed"},
		"an agent that another release registered": {mode: clusterv1alpha1.Pull, role: foreign, owner: "cluster"},
		"an agent with roles of an administrator":  {mode: clusterv1alpha1.Pull, owner: "cluster"},
		"a cluster without an agent":               {mode: clusterv1alpha1.Push},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := newPullCluster()
			cluster.Spec.SyncMode = test.mode
			objects := []client.Object{cluster}
			if test.role != nil {
				role := test.role.DeepCopy()
				role.UID = "managed"
				objects = append(objects, role)
			}
			karmada := newControlPlane(t, objects...)
			r := newReconciler(karmada)
			for range 2 { // the second pass changes nothing
				if err := reconcileUntilStable(r, item{cluster: "east"}); err != nil {
					t.Fatal(err)
				}
			}
			for _, right := range agent.RemovalObjects("east") {
				if test.owner == "managed" && right.GetNamespace() != clusterv1alpha1.NamespaceKarmadaSystem {
					continue // the agent's other roles contain these permissions
				}
				err := karmada.Get(t.Context(), client.ObjectKeyFromObject(right), right)
				if client.IgnoreNotFound(err) != nil || (err == nil) != (test.owner != "") {
					t.Errorf("reading %T: %v", right, err)
				}
				if err != nil {
					continue
				}
				if owners := right.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != test.owner {
					t.Errorf("%T has the owners %v, want %s", right, owners, test.owner)
				}
				if role, ok := right.(*rbacv1.Role); ok && role.Namespace == clusterv1alpha1.NamespaceKarmadaSystem {
					if diff := cmp.Diff([]string{"karmada-epoch"}, role.Rules[0].ResourceNames); diff != "" {
						t.Errorf("names (-want +got):\n%s", diff)
					}
				}
			}
		})
	}
}
