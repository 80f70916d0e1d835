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
	// revisionBump is the minimum by which a restore raises the etcd revision. Processes that run
	// during the restore have seen revisions from after the backup. The restored etcd must not use
	// these revisions again.
	revisionBump = 1_000_000_000
	// unknownRevisionBump is used instead of revisionBump if the revision of the replaced data
	// cannot be read.
	unknownRevisionBump = 10 * revisionBump
	// revisionBumpPerSecond is an additional increment for each second since the backup. It is
	// higher than the number of revisions that etcd can write in a second. So a later restore of
	// the same backup has higher revisions than an earlier restore, also on another machine. This
	// is true even if the earlier restore added a revisionBump to existing data, because
	// revisionBumpPerSecond exceeds a revisionBump after 17 minutes.
	revisionBumpPerSecond = 1_000_000
)

// Snapshot describes a snapshot of etcd.
type Snapshot struct {
	// Revision is the revision of the last write in the snapshot.
	Revision int64
	// Keys is the number of keys in the snapshot.
	Keys int
	// Hash is the checksum of the content.
	Hash uint32
	// Version is the version of the etcd that wrote the snapshot.
	Version string
	// NamesBelowPrefix are the keys under the prefix of SaveSnapshot, without the prefix.
	NamesBelowPrefix []string
}

var errNoEtcd = errors.New("no socket of a running etcd found")

// SaveSnapshot writes the content of the etcd that runs on a data directory to a new file.
// The snapshot is consistent: it contains all writes up to one revision, and none after it.
// The keys under prefix are listed in the result.
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
	below, err := keysBelowPrefix(ctx, endpoint, prefix, saved.Revision)
	if err != nil {
		return Snapshot{}, err
	}
	return Snapshot{Revision: saved.Revision, Keys: saved.TotalKey, Hash: saved.Hash, Version: version, NamesBelowPrefix: below}, nil
}

// runningEtcd returns the endpoint of the etcd that runs on a data directory.
func runningEtcd(dataDir string) (string, error) {
	dir, err := socketDir(dataDir)
	if err != nil {
		return "", err
	}
	sockets, err := filepath.Glob(filepath.Join(dir, "client-*"))
	if err != nil {
		return "", fmt.Errorf("listing the sockets of etcd: %w", err)
	}
	if len(sockets) == 0 {
		return "", fmt.Errorf("reading %s: %w", dir, errNoEtcd)
	}
	// The names of the sockets contain the start time of etcd in base 36 with equal length, so the
	// last name is the name of the newest socket.
	return "unix://" + slices.Max(sockets), nil
}

func keysBelowPrefix(ctx context.Context, endpoint, prefix string, revision int64) ([]string, error) {
	client, err := dialEtcd(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	found, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithRev(revision))
	if err != nil {
		return nil, fmt.Errorf("listing the keys under %s in etcd: %w", prefix, err)
	}
	names := make([]string, 0, len(found.Kvs))
	for _, each := range found.Kvs {
		names = append(names, string(each.Key[len(prefix):]))
	}
	return names, nil
}

// InspectSnapshot verifies a snapshot file and describes its content.
func InspectSnapshot(path string) (Snapshot, error) {
	found, err := snapshot.NewV3(zap.NewNop()).Status(path)
	if err != nil {
		return Snapshot{}, fmt.Errorf("checking the snapshot of etcd: %w", err)
	}
	return Snapshot{Revision: found.Revision, Keys: found.TotalKey, Hash: found.Hash, Version: found.Version}, nil
}

// RestoreOptions configure a restore.
type RestoreOptions struct {
	// Snapshot is the path of the snapshot file.
	Snapshot string
	// Age is the time since the backup.
	Age time.Duration
	// DataDir is the data directory to create.
	DataDir string
	// ReplacedDir is the data directory that the restore replaces. It need not exist.
	ReplacedDir string
	// ExtraKeys are written into the restored data.
	ExtraKeys map[string]string
}

// RestoreSnapshot creates a data directory of etcd from a snapshot, and writes keys into this
// directory. The new revisions are higher than the revisions of the snapshot, of the replaced
// data, and of an earlier restore of the same backup elsewhere. A client that watches from an
// earlier revision gets the error that the revision is compacted, and lists again.
func RestoreSnapshot(ctx context.Context, o RestoreOptions) error {
	saved, err := InspectSnapshot(o.Snapshot)
	if err != nil {
		return err
	}
	config := newSingleMemberConfig()
	peers := make([]string, 0, len(config.AdvertisePeerUrls))
	for _, peer := range config.AdvertisePeerUrls {
		peers = append(peers, peer.String())
	}
	err = snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: o.Snapshot, Name: config.Name, OutputDataDir: o.DataDir, PeerURLs: peers,
		InitialCluster: config.InitialCluster, InitialClusterToken: config.InitialClusterToken,
		RevisionBump: revisionIncrement(saved.Revision, o.ReplacedDir, o.Age), MarkCompacted: true,
	})
	if err != nil {
		return fmt.Errorf("restoring the snapshot of etcd: %w", err)
	}
	return writeKeys(ctx, o.DataDir, o.ExtraKeys)
}

// revisionIncrement returns the number by which revisions are raised. The resulting revision is
// higher than any revision that a process may have seen, here or in another restore of the same
// backup.
func revisionIncrement(revision int64, replacedDir string, age time.Duration) uint64 {
	ageIncrement := int64(max(age, 0)/time.Second) * revisionBumpPerSecond
	db := filepath.Join(replacedDir, "member", "snap", "db")
	if _, err := os.Stat(db); errors.Is(err, os.ErrNotExist) {
		return uint64(ageIncrement + revisionBump)
	}
	replacedSnapshot, err := InspectSnapshot(db)
	if err != nil {
		return uint64(ageIncrement + unknownRevisionBump)
	}
	return uint64(max(replacedSnapshot.Revision-revision, ageIncrement) + revisionBump)
}

// writeKeys starts an etcd on a data directory, writes the keys, and stops the etcd.
func writeKeys(ctx context.Context, dataDir string, keys map[string]string) error {
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
	for key, value := range keys {
		if _, err := client.Put(ctx, key, value); err != nil {
			return fmt.Errorf("writing %s into the restored etcd: %w", key, err)
		}
	}
	return nil
}
