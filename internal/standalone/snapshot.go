package standalone

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

const (
	// revisionBump is how much a restore raises revisions. Processes that run through
	// it saw revisions of the time after the backup, which must not come again.
	revisionBump = 1_000_000_000
	// unknownBump is that of a restore over data whose revision cannot be read.
	unknownBump = 10 * revisionBump
	// bumpPerSecond is by how much more revisions are raised for each second since the
	// backup: more than a storage is written in a second. A later restore of the same
	// backup is above an earlier one, also on another machine, and also if a restore on
	// that one was above the data of one before: a revisionBump is made up for in 17
	// minutes.
	bumpPerSecond = 1_000_000
)

// Snapshot describes a snapshot of etcd.
type Snapshot struct {
	// Revision is that of the last write in it.
	Revision int64
	// Keys is how many keys it holds.
	Keys int
	// Hash is a checksum of its content.
	Hash uint32
	// Version is the version of the etcd that wrote it.
	Version string
	// Below are the names of the keys right below the prefix that was asked for.
	Below []string
}

var errNoEtcd = errors.New("there is no socket of a running etcd")

// SaveSnapshot writes the content of the etcd that runs on a data directory to a new
// file. The snapshot is consistent: it holds the writes up to one revision and none
// after that. prefix is one whose keys are listed.
func SaveSnapshot(ctx context.Context, dataDir, path, prefix string) (Snapshot, error) {
	endpoint, err := runningEtcd(dataDir)
	if err != nil {
		return Snapshot{}, err
	}
	config := clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: etcdDialTimeout, Logger: zap.NewNop()}
	manager := snapshot.NewV3(zap.NewNop())
	version, err := manager.Save(ctx, config, path)
	if err != nil {
		return Snapshot{}, fmt.Errorf("saving a snapshot of etcd in %s: %w", dataDir, err)
	}
	saved, err := manager.Status(path)
	if err != nil {
		return Snapshot{}, fmt.Errorf("checking the snapshot of etcd in %s: %w", dataDir, err)
	}
	below, err := keysBelow(ctx, endpoint, prefix, saved.Revision)
	if err != nil {
		return Snapshot{}, err
	}
	return Snapshot{Revision: saved.Revision, Keys: saved.TotalKey, Hash: saved.Hash, Version: version, Below: below}, nil
}

// runningEtcd is the endpoint of the etcd that runs on a data directory.
func runningEtcd(dataDir string) (string, error) {
	dir, err := socketDir(dataDir)
	if err != nil {
		return "", err
	}
	sockets, err := filepath.Glob(filepath.Join(dir, "client-*"))
	if err != nil {
		return "", fmt.Errorf("looking for the socket of etcd: %w", err)
	}
	if len(sockets) == 0 {
		return "", fmt.Errorf("looking into %s: %w", dir, errNoEtcd)
	}
	// The names carry the time of the start in base 36, of equal length.
	return "unix://" + slices.Max(sockets), nil
}

func keysBelow(ctx context.Context, endpoint, prefix string, revision int64) ([]string, error) {
	client, err := dialEtcd(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	found, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithRev(revision))
	if err != nil {
		return nil, fmt.Errorf("listing keys below %s in etcd: %w", prefix, err)
	}
	names := make([]string, 0, len(found.Kvs))
	for _, each := range found.Kvs {
		names = append(names, string(each.Key[len(prefix):]))
	}
	return names, nil
}

// InspectSnapshot checks that a file is an undamaged snapshot and describes it.
func InspectSnapshot(path string) (Snapshot, error) {
	found, err := snapshot.NewV3(zap.NewNop()).Status(path)
	if err != nil {
		return Snapshot{}, fmt.Errorf("checking the snapshot of etcd: %w", err)
	}
	return Snapshot{Revision: found.Revision, Keys: found.TotalKey, Hash: found.Hash, Version: found.Version}, nil
}

// RestoreOptions say what is restored, and where.
type RestoreOptions struct {
	// Snapshot is the file.
	Snapshot string
	// Age is the time since the backup.
	Age time.Duration
	// DataDir is the data directory that is made.
	DataDir string
	// Replaced is the data directory of before, which may not exist.
	Replaced string
	// Put are keys that are written into the restored data.
	Put map[string]string
}

// RestoreSnapshot makes a data directory of etcd from a snapshot, and writes keys into
// it. Its revisions are higher than those of the snapshot, of the data that it replaces,
// and of an earlier restore of the same backup elsewhere. A client that watches from an
// earlier revision is told that it is compacted, and lists anew.
func RestoreSnapshot(ctx context.Context, o RestoreOptions) error {
	saved, err := InspectSnapshot(o.Snapshot)
	if err != nil {
		return err
	}
	config := loneMember()
	peers := make([]string, 0, len(config.AdvertisePeerUrls))
	for _, peer := range config.AdvertisePeerUrls {
		peers = append(peers, peer.String())
	}
	err = snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: o.Snapshot, Name: config.Name, OutputDataDir: o.DataDir, PeerURLs: peers,
		InitialCluster: config.InitialCluster, InitialClusterToken: config.InitialClusterToken,
		RevisionBump: bump(saved.Revision, o.Replaced, o.Age), MarkCompacted: true,
	})
	if err != nil {
		return fmt.Errorf("restoring the snapshot of etcd: %w", err)
	}
	return putIn(ctx, o.DataDir, o.Put)
}

// bump is how much revisions are raised, so that they are higher than all that
// processes may have seen, here or where the same backup was restored before.
func bump(revision int64, replaced string, age time.Duration) uint64 {
	elsewhere := int64(max(age, 0)/time.Second) * bumpPerSecond
	db := filepath.Join(replaced, "member", "snap", "db")
	if _, err := os.Stat(db); errors.Is(err, os.ErrNotExist) {
		return uint64(elsewhere + revisionBump)
	}
	before, err := InspectSnapshot(db)
	if err != nil {
		return uint64(elsewhere + unknownBump)
	}
	return uint64(max(before.Revision-revision, elsewhere) + revisionBump)
}

// putIn starts an etcd on a data directory, writes keys, and stops it.
func putIn(ctx context.Context, dataDir string, put map[string]string) error {
	endpoint, running, err := startEtcd(ctx, EtcdOptions{DataDir: dataDir, Fsync: true})
	if err != nil {
		return err
	}
	defer func() { running.stop(); <-running.done }()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: etcdDialTimeout, Logger: zap.NewNop()})
	if err != nil {
		return fmt.Errorf("connecting to etcd: %w", err)
	}
	defer func() { _ = client.Close() }()
	for key, value := range put {
		if _, err := client.Put(ctx, key, value); err != nil {
			return fmt.Errorf("writing %s into the restored etcd: %w", key, err)
		}
	}
	return nil
}
