package standalone

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// withEtcd runs an etcd on a directory while it calls use.
func withEtcd(t *testing.T, dir string, use func(ctx context.Context, client *clientv3.Client)) {
	t.Helper()
	endpoint, running, err := startEtcd(t.Context(), EtcdOptions{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { running.stop(); <-running.done }()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: etcdDialTimeout, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	use(t.Context(), client)
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
		saved, err := SaveSnapshot(ctx, original, file, "/registry/clusters/")
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
		if err := RestoreSnapshot(t.Context(), RestoreOptions{
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

// A restore on another machine cannot read how much was written since the earlier restore, because
// the data of the earlier restore is not on this machine.
func TestLaterRestoreElsewhereHasHigherRevision(t *testing.T) {
	const writesPerSecond = 10_000
	none := filepath.Join(t.TempDir(), "none")
	for name, ages := range map[string]struct{ earlier, later time.Duration }{
		"a minute later": {time.Minute, 2 * time.Minute},
		"a day later":    {time.Hour, 25 * time.Hour},
		"a year later":   {time.Hour, 365 * 24 * time.Hour},
		"a wrong clock":  {-time.Hour, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			passed := int64((ages.later - ages.earlier) / time.Second)
			seen, now := int64(revisionIncrement(3, none, ages.earlier))+passed*writesPerSecond, int64(revisionIncrement(3, none, ages.later))
			if now <= seen {
				t.Errorf("revisions are raised by %d, but revision %d was used before", now, seen)
			}
		})
	}
	if got := revisionIncrement(3, none, -time.Hour); got < revisionBump {
		t.Errorf("a backup from the future raises revisions by %d", got)
	}
}
