package up

import (
	"context"
	"encoding/json"
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

func TestPurgeIsRejectedForJoinedClusters(t *testing.T) {
	const member1, member2 = "https://127.0.0.1:30001", "https://127.0.0.1:30002"
	members := map[string]string{"member1": member1, "member2": member2}
	far := joinedCluster("far", "https://far.example:6443", clusterv1alpha1.Push)
	edge := joinedCluster("edge", "https://10.0.0.1:6443", clusterv1alpha1.Pull)
	tests := map[string]struct {
		clusters []clusterv1alpha1.Cluster
		want     []string
	}{
		"no clusters": {},
		"members of this installation": {clusters: []clusterv1alpha1.Cluster{
			joinedCluster("member1", member1, clusterv1alpha1.Push), joinedCluster("member2", member2, clusterv1alpha1.Pull),
		}},
		"a member under another name":         {clusters: []clusterv1alpha1.Cluster{joinedCluster("east", member1, clusterv1alpha1.Push)}},
		"a member without an address":         {clusters: []clusterv1alpha1.Cluster{joinedCluster("member2", "", clusterv1alpha1.Pull)}},
		"a cluster with the name of a member": {clusters: []clusterv1alpha1.Cluster{joinedCluster("member1", "https://far.example:6443", clusterv1alpha1.Push)}, want: []string{"1 cluster ", "member1 (push)"}},
		"a cluster without an address":        {clusters: []clusterv1alpha1.Cluster{joinedCluster("silent", "", clusterv1alpha1.Pull)}, want: []string{"silent (pull)", "`karmadactl unregister silent --cluster-kubeconfig=MEMBER_KUBECONFIG`"}},
		"a push and a pull cluster": {clusters: []clusterv1alpha1.Cluster{far, edge, joinedCluster("member1", member1, clusterv1alpha1.Push)},
			want: []string{"2 clusters ", "edge (pull), far (push)", "`karmadactl unjoin far --cluster-kubeconfig=MEMBER_KUBECONFIG`", "`karmadactl unregister edge --cluster-kubeconfig=MEMBER_KUBECONFIG`", "--force"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := dataDir{"/data"}.ensureNoCredentialHolders(test.clusters, members)
			if (err == nil) != (len(test.want) == 0) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error %q does not contain %q", err, part)
				}
			}
		})
	}
}

func TestPurgeErrorListsFewClusters(t *testing.T) {
	var many []clusterv1alpha1.Cluster
	for n := range 500 {
		many = append(many, joinedCluster(fmt.Sprintf("%048d", n), "https://far.example", clusterv1alpha1.Push))
	}
	err := dataDir{"/data"}.ensureNoCredentialHolders(many, nil)
	if err == nil || !strings.Contains(err.Error(), "500 clusters") || !strings.Contains(err.Error(), "and 490 more") || len(err.Error()) > 1500 {
		t.Errorf("error %v", err)
	}
}

// readerOf returns a reader that runs the same command for every directory.
func readerOf(name string, args ...string) clusterReader {
	return func(ctx context.Context, _ string) *exec.Cmd { return exec.CommandContext(ctx, name, args...) }
}

func TestPurgeIsRejectedWithoutClusterList(t *testing.T) {
	broken := newDataDir(t, "state.json", "control-plane/etcd/member/wal/0.wal", "control-plane/etcd/member/snap/db")
	tests := map[string]struct {
		read    clusterReader
		message string
	}{
		"a failing reader":               {readerOf("false"), "exit status 1"},
		"a reader without output":        {readerOf("true"), "decoding the stored Clusters"},
		"a missing reader":               {readerOf("/nowhere"), "/nowhere"},
		"a reader with an error message": {readerOf("sh", "-c", "echo the file is damaged >&2; exit 3"), "exit status 3: the file is damaged"},
		"a reader with long output":      {readerOf("sh", "-c", "echo cause >&2; head -c 100000 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 3"), "xend"},
		"a reader with a long panic":     {readerOf("sh", "-c", "echo cause >&2; head -c 100000 /dev/zero | tr '\\0' x >&2; exit 3"), "cause\nx"},
	}
	for name, test := range tests {
		_, err := broken.remove(t.Context(), func() error { return broken.ensureNoHoldersInDump(t.Context(), test.read) })
		if err == nil || !strings.Contains(err.Error(), "--force") || !strings.Contains(err.Error(), test.message) || len(err.Error()) > 3000 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(broken.path, "state.json")); err != nil {
		t.Errorf("the data is removed: %v", err)
	}
	odd := dataDir{filepath.Join(broken.path, "data[1]")}
	if err := os.MkdirAll(filepath.Join(odd.controlPlaneDir(), "etcd", "member", "snap"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := odd.ensureNoHoldersInDump(t.Context(), readerOf("false")); err == nil {
		t.Error("the storage of a directory with a bracket in its name is not found")
	}
	empty := newDataDir(t, "state.json")
	if _, err := empty.remove(t.Context(), func() error { return empty.ensureNoHoldersInStorage(t.Context()) }); err != nil {
		t.Errorf("a directory without storage: %v", err)
	}
	for name, value := range map[string]string{"an empty value": "", "another object": `{"kind":"Secret"}`, "an encrypted value": "k8s:enc:secretbox:v1:k:x"} {
		if _, err := parseClusters([][]byte{[]byte(value)}); err == nil {
			t.Errorf("%s is decoded as a Cluster", name)
		}
	}
}

func TestPurgeReadsReplacedControlPlanes(t *testing.T) {
	const kept = "control-plane.before-restore-20300501T120000Z"
	prints := func(clusters ...clusterv1alpha1.Cluster) []string {
		values := make([][]byte, len(clusters))
		for i, cluster := range clusters {
			value, err := json.Marshal(cluster)
			if err != nil {
				t.Fatal(err)
			}
			values[i] = value
		}
		text, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		return []string{"printf", "%s", string(text)}
	}
	prod, agent := joinedCluster("prod", "https://prod.example:6443", clusterv1alpha1.Push), joinedCluster("edge", "https://10.0.0.1", clusterv1alpha1.Pull)
	tests := map[string]struct {
		present, replaced []string
		want              []string
	}{
		"no clusters":                          {present: prints(), replaced: prints()},
		"a cluster that joined after a backup": {present: prints(), replaced: prints(prod), want: []string{kept, "prod (push)", "`karmadactl unjoin prod --force --cluster-kubeconfig=MEMBER_KUBECONFIG`, then remove "}},
		"an agent that joined after a backup":  {present: prints(), replaced: prints(agent), want: []string{kept, "`karmadactl unregister edge --force --cluster-kubeconfig=MEMBER_KUBECONFIG`"}},
		"a cluster in both":                    {present: prints(prod), replaced: prints(prod), want: []string{"`karmadactl unjoin prod --cluster-kubeconfig"}},
		"an unreadable storage":                {present: prints(), replaced: []string{"false"}, want: []string{kept, "it is unknown which clusters", "--force"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := newDataDir(t, "state.json", "control-plane/etcd/member/snap/db", kept+"/etcd/member/snap/db")
			_, err := dir.remove(t.Context(), func() error {
				return dir.ensureNoHoldersInDump(t.Context(), func(ctx context.Context, of string) *exec.Cmd {
					command := test.present
					if of == filepath.Join(dir.path, kept) {
						command = test.replaced
					}
					return exec.CommandContext(ctx, command[0], command[1:]...)
				})
			})
			if (err == nil) != (len(test.want) == 0) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error %q does not contain %q", err, part)
				}
			}
			if _, there := os.Stat(filepath.Join(dir.path, kept)); err != nil && there != nil {
				t.Errorf("the data is removed: %v", there)
			}
		})
	}
}
