package standalone

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

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

// RestoreSnapshot makes a data directory of etcd from a snapshot, and writes keys into
// it. Its revisions are higher than those of the snapshot and of the data in replaced,
// which may not exist; whoever watches from an earlier revision is told that it is
// compacted, and lists anew.
func RestoreSnapshot(ctx context.Context, path, dataDir, replaced string, put map[string]string) error {
	saved, err := InspectSnapshot(path)
	if err != nil {
		return err
	}
	config := loneMember()
	peers := make([]string, 0, len(config.AdvertisePeerUrls))
	for _, peer := range config.AdvertisePeerUrls {
		peers = append(peers, peer.String())
	}
	err = snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: path, Name: config.Name, OutputDataDir: dataDir, PeerURLs: peers,
		InitialCluster: config.InitialCluster, InitialClusterToken: config.InitialClusterToken,
		RevisionBump: bump(saved.Revision, replaced), MarkCompacted: true,
	})
	if err != nil {
		return fmt.Errorf("restoring the snapshot of etcd: %w", err)
	}
	return putIn(ctx, dataDir, put)
}

// bump is how much revisions are raised, so that they are higher than all that
// processes may have seen.
func bump(revision int64, replaced string) uint64 {
	db := filepath.Join(replaced, "member", "snap", "db")
	if _, err := os.Stat(db); errors.Is(err, os.ErrNotExist) {
		return revisionBump
	}
	before, err := InspectSnapshot(db)
	if err != nil {
		return unknownBump
	}
	return uint64(max(before.Revision-revision, 0)) + revisionBump
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
