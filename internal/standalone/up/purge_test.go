package up

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func joinedCluster(name, endpoint string, mode clusterv1alpha1.ClusterSyncMode) clusterv1alpha1.Cluster {
	return clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{APIEndpoint: endpoint, SyncMode: mode},
	}
}

func TestClustersThatArePeoplesHoldAPurge(t *testing.T) {
	const member1, member2 = "https://127.0.0.1:30001", "https://127.0.0.1:30002"
	members := map[string]string{"member1": member1, "member2": member2}
	far := joinedCluster("far", "https://far.example:6443", clusterv1alpha1.Push)
	edge := joinedCluster("edge", "https://10.0.0.1:6443", clusterv1alpha1.Pull)
	tests := map[string]struct {
		clusters []clusterv1alpha1.Cluster
		want     []string
	}{
		"none": {},
		"members of this installation": {clusters: []clusterv1alpha1.Cluster{
			joinedCluster("member1", member1, clusterv1alpha1.Push), joinedCluster("member2", member2, clusterv1alpha1.Pull),
		}},
		"a member under another name":            {clusters: []clusterv1alpha1.Cluster{joinedCluster("east", member1, clusterv1alpha1.Push)}},
		"a member that has not said its address": {clusters: []clusterv1alpha1.Cluster{joinedCluster("member2", "", clusterv1alpha1.Pull)}},
		"a cluster with the name of a member":    {clusters: []clusterv1alpha1.Cluster{joinedCluster("member1", "https://far.example:6443", clusterv1alpha1.Push)}, want: []string{"1 cluster ", "member1 (push)"}},
		"a cluster without an address":           {clusters: []clusterv1alpha1.Cluster{joinedCluster("silent", "", clusterv1alpha1.Pull)}, want: []string{"silent (pull)", "`karmadactl unregister silent`"}},
		"a push and a pull cluster": {clusters: []clusterv1alpha1.Cluster{far, edge, joinedCluster("member1", member1, clusterv1alpha1.Push)},
			want: []string{"2 clusters ", "edge (pull), far (push)", "`karmadactl unjoin far`", "`karmadactl unregister edge`", "--force"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := dataDir{"/data"}.holders(test.clusters, members)
			if (err == nil) != (len(test.want) == 0) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error %q does not tell %q", err, part)
				}
			}
		})
	}
}

func TestAPurgeNamesAFewOfManyClusters(t *testing.T) {
	var many []clusterv1alpha1.Cluster
	for n := range 500 {
		many = append(many, joinedCluster(fmt.Sprintf("%048d", n), "https://far.example", clusterv1alpha1.Push))
	}
	err := dataDir{"/data"}.holders(many, nil)
	if err == nil || !strings.Contains(err.Error(), "500 clusters") || !strings.Contains(err.Error(), "and 490 more") || len(err.Error()) > 1500 {
		t.Errorf("error %v", err)
	}
}

func TestAPurgeThatKnowsNothingIsRefused(t *testing.T) {
	broken := made(t, "state.json", "control-plane/etcd/member/wal/0.wal", "control-plane/etcd/member/snap/db")
	for name, reader := range map[string]*exec.Cmd{
		"a reader that ends": exec.Command("false"), "a reader that says nothing": exec.Command("true"), "a reader that is not there": exec.Command("/nowhere"),
	} {
		_, err := broken.remove(func() error { return broken.heldAsRead(t.Context(), reader) })
		if err == nil || !strings.Contains(err.Error(), "--force") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(broken.path, "state.json")); err != nil {
		t.Errorf("its data is removed: %v", err)
	}
	empty := made(t, "state.json")
	if _, err := empty.remove(func() error { return empty.heldInStorage(t.Context()) }); err != nil {
		t.Errorf("a directory without storage: %v", err)
	}
	for name, value := range map[string]string{"nothing": "", "another object": `{"kind":"Secret"}`, "an encrypted one": "k8s:enc:secretbox:v1:k:x"} {
		if _, err := parseClusters([][]byte{[]byte(value)}); err == nil {
			t.Errorf("%s is read as a Cluster", name)
		}
	}
}
