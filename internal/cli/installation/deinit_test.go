package installation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestHoldersErrorNamesClustersAndCommands(t *testing.T) {
	cluster := func(name string, mode clusterv1alpha1.ClusterSyncMode) clusterv1alpha1.Cluster {
		joined := clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
		joined.Name = name
		return joined
	}
	err := holdersError("kubectl karmada", "prod", []clusterv1alpha1.Cluster{cluster("west", clusterv1alpha1.Pull), cluster("east", clusterv1alpha1.Push)})
	want := `not removing the control plane in namespace prod: these clusters would keep its credentials: east (push), west (pull)
Remove each first, with the kubeconfig of the control plane:
  kubectl karmada unjoin east --cluster-kubeconfig=MEMBER_KUBECONFIG
  kubectl karmada unregister west --cluster-kubeconfig=MEMBER_KUBECONFIG
With --force the control plane is removed anyway; the clusters keep the service accounts of Karmada with their roles and bindings, agents, and propagated objects`
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := holdersError("karmadactl", "prod", nil); err != nil {
		t.Errorf("without clusters: %v", err)
	}
}
