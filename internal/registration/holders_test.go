package registration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func clusterInMode(name string, mode clusterv1alpha1.ClusterSyncMode) clusterv1alpha1.Cluster {
	cluster := clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
	cluster.Name = name
	return cluster
}

func TestCredentialHolders(t *testing.T) {
	all := []clusterv1alpha1.Cluster{
		clusterInMode("west", clusterv1alpha1.Push), clusterInMode("own", clusterv1alpha1.Push), clusterInMode("edge", clusterv1alpha1.Pull), clusterInMode("east", clusterv1alpha1.Push),
	}
	holders := NewCredentialHolders(all, func(c *clusterv1alpha1.Cluster) bool { return c.Name == "own" })
	if got, want := holders.String(), "east (push), edge (pull), west (push)"; got != want || holders.Count() != 3 {
		t.Errorf("%d holders %s, want %s", holders.Count(), got, want)
	}
	want := []string{
		"kubectl karmada unjoin east --force --cluster-kubeconfig=MEMBER_KUBECONFIG",
		"kubectl karmada unregister edge --force --cluster-kubeconfig=MEMBER_KUBECONFIG",
	}
	if diff := cmp.Diff(want, holders.LeaveCommands("kubectl karmada", "--force")); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestCredentialHoldersListsFewClusters(t *testing.T) {
	var many []clusterv1alpha1.Cluster
	for n := range 500 {
		many = append(many, clusterInMode(fmt.Sprintf("c%03d", n), clusterv1alpha1.Push))
	}
	holders := NewCredentialHolders(many, func(*clusterv1alpha1.Cluster) bool { return false })
	if text := holders.String(); holders.Count() != 500 || !strings.HasSuffix(text, "c009 (push), and 490 more") {
		t.Errorf("%d holders: %s", holders.Count(), text)
	}
}
