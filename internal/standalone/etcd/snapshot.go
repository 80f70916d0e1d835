package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"karmada.io/karmada/internal/pki"
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

// connectTimeout limits how long the connection to a running etcd may take.
const connectTimeout = 5 * time.Second

var errNotRunning = errors.New("no socket of a running etcd found")

// SaveSnapshot writes the content of the etcd that runs on dataDir, in any process, to a new file.
// certs are the certificates of this etcd. The snapshot is consistent: it contains all writes up to
// one revision, and none after it. The result lists the keys under prefix.
func SaveSnapshot(ctx context.Context, dataDir string, certs pki.Dir, path, prefix string) (Snapshot, error) {
	dir, err := openSocketDir(dataDir)
	if err != nil {
		return Snapshot{}, err
	}
	defer func() { _ = dir.Close() }()
	if _, err := os.Stat(dir.Path()); err != nil {
		return Snapshot{}, fmt.Errorf("%w: %w: restart Karmada", errNotRunning, err)
	}
	config, err := newClientConfig(dir, certs)
	if err != nil {
		return Snapshot{}, err
	}
	manager := snapshot.NewV3(zap.NewNop())
	version, err := manager.Save(ctx, config, path)
	if err != nil {
		return Snapshot{}, fmt.Errorf("saving a snapshot of etcd in %s: %w", dataDir, err)
	}
	saved, err := manager.Status(path)
	if err != nil {
		return Snapshot{}, fmt.Errorf("checking the snapshot of etcd in %s: %w", dataDir, err)
	}
	names, err := listNames(ctx, config, prefix, saved.Revision)
	if err != nil {
		return Snapshot{}, err
	}
	return Snapshot{Revision: saved.Revision, Keys: saved.TotalKey, Hash: saved.Hash, Version: version, NamesBelowPrefix: names}, nil
}

// newClientConfig returns the configuration of a client that connects to the socket.
func newClientConfig(dir SocketDir, certs pki.Dir) (clientv3.Config, error) {
	tlsConfig, err := transport.TLSInfo{
		TrustedCAFile: certs.CertFile(certAuthority), CertFile: certs.CertFile(certClient), KeyFile: certs.KeyFile(certClient),
	}.ClientConfig()
	if err != nil {
		return clientv3.Config{}, fmt.Errorf("loading the client certificate of etcd: %w: restart Karmada, which issues missing certificates",
			err)
	}
	return clientv3.Config{
		Endpoints: []string{socketURL(dir)}, TLS: tlsConfig, DialTimeout: connectTimeout, Logger: zap.NewNop(),
		// Without these options, DialTimeout has no effect, and the error has no cause.
		//nolint:staticcheck // etcd's client dials in the deprecated way
		DialOptions: []grpc.DialOption{grpc.WithBlock(), grpc.WithReturnConnectionError()},
	}, nil
}

// listNames returns the keys under prefix at a revision, without prefix.
func listNames(ctx context.Context, config clientv3.Config, prefix string, revision int64) ([]string, error) {
	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
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
	config := newConfig()
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
	server, err := Start(ctx, Options{DataDir: dataDir, Fsync: true})
	if err != nil {
		return err
	}
	defer server.Close()
	for key, value := range keys {
		if _, err := server.Client().Put(ctx, key, value); err != nil {
			return fmt.Errorf("writing %s into the restored etcd: %w", key, err)
		}
	}
	return nil
}
