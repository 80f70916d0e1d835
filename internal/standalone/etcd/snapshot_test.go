package etcd_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/standalone/etcd"
	"karmada.io/karmada/internal/testenv/testetcd"
)

// revisionBump is the least number by which a restore raises the revision.
const revisionBump = 1_000_000_000

// certsOf returns an etcd's certificate directory.
func certsOf(dataDir string) pki.Dir { return pki.Dir{Path: dataDir + "-pki"} }

// withEtcd runs an etcd with a socket on a directory while it calls use.
func withEtcd(t *testing.T, dir string, use func(ctx context.Context, client *clientv3.Client)) {
	t.Helper()
	server := testetcd.StartIn(t, dir, certsOf(dir))
	defer server.Close()
	use(t.Context(), server.Client())
}

func mustPut(t *testing.T, client *clientv3.Client, key, value string) int64 {
	t.Helper()
	answer, err := client.Put(t.Context(), key, value)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Header.Revision
}

func allValues(t *testing.T, client *clientv3.Client) map[string]string {
	t.Helper()
	found, err := client.Get(t.Context(), "/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, each := range found.Kvs {
		values[string(each.Key)] = string(each.Value)
	}
	return values
}

// TestRestoreNeverRepeatsRevision restores the same snapshot twice. The second restore replaces
// the data of the first. A revision that a process may have seen must not be used again.
func TestRestoreNeverRepeatsRevision(t *testing.T) {
	dir := t.TempDir()
	original, first, second, file := filepath.Join(dir, "original"), filepath.Join(dir, "first"), filepath.Join(dir, "second"), filepath.Join(dir, "snapshot")
	var seen int64
	withEtcd(t, original, func(ctx context.Context, client *clientv3.Client) {
		mustPut(t, client, "/registry/clusters/east", "a")
		mustPut(t, client, "/registry/clusters/west", "b")
		saved, err := etcd.SaveSnapshot(ctx, original, certsOf(original), file, "/registry/clusters/")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"east", "west"}, saved.NamesBelowPrefix); diff != "" || saved.Keys != 2 || saved.Revision != 3 {
			t.Errorf("snapshot %+v", saved)
		}
		// Writes after the snapshot are lost.
		mustPut(t, client, "/registry/clusters/east", "later")
		seen = mustPut(t, client, "/registry/clusters/south", "later")
	})
	before := original
	for _, restored := range []string{first, second} {
		if err := etcd.RestoreSnapshot(t.Context(), etcd.RestoreOptions{
			Snapshot: file, DataDir: restored, ReplacedDir: before, ExtraKeys: map[string]string{"/epoch": restored},
		}); err != nil {
			t.Fatal(err)
		}
		withEtcd(t, restored, func(ctx context.Context, client *clientv3.Client) {
			want := map[string]string{"/registry/clusters/east": "a", "/registry/clusters/west": "b", "/epoch": restored}
			if diff := cmp.Diff(want, allValues(t, client)); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			watch := <-client.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(seen))
			if watch.CompactRevision <= seen {
				t.Errorf("a watch from revision %d continues: %+v", seen, watch)
			}
			now := mustPut(t, client, "/registry/clusters/north", "c")
			if now <= seen+revisionBump/2 {
				t.Errorf("the new revision is %d, but %d was used before", now, seen)
			}
			seen = now
		})
		before = restored
	}
}
