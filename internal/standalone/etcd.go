package standalone

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	etcdReadyTimeout = 60 * time.Second
	etcdQuotaBytes   = 8 << 30
	// slowRequest is how long a request may take before etcd warns of it.
	slowRequest = 300 * time.Millisecond
	// socketLife is the length of what tells the sockets of one life from those of
	// another.
	socketLife = 13
	// maxSocketPath is what the kernel leaves for the path of a unix socket.
	maxSocketPath = 100
)

// EtcdOptions say where etcd keeps its data and how careful it is with it.
type EtcdOptions struct {
	// DataDir holds the data; it is created if needed.
	DataDir string
	// Fsync false gives up safety against a crash of the machine (not of the
	// process) for speed.
	Fsync bool
	// Log receives etcd's log; nil discards it.
	Log zapcore.WriteSyncer
}

// startEtcd runs a single-member etcd and returns the endpoint of its client
// API, a unix socket, once it serves.
func startEtcd(ctx context.Context, options EtcdOptions) (endpoint string, s *server, err error) {
	config, err := etcdConfig(options)
	if err != nil {
		return "", nil, err
	}
	if err := removeSockets(filepath.Dir(config.ListenClientUrls[0].Path)); err != nil {
		return "", nil, err
	}
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return "", nil, fmt.Errorf("starting etcd in %s: %w", options.DataDir, err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
	case err := <-etcd.Err():
		etcd.Close()
		return "", nil, fmt.Errorf("starting etcd in %s: %w", options.DataDir, err)
	case <-ctx.Done():
		etcd.Close()
		return "", nil, ctx.Err()
	case <-time.After(etcdReadyTimeout):
		etcd.Close()
		return "", nil, fmt.Errorf("etcd in %s is not ready after %s", options.DataDir, etcdReadyTimeout)
	}
	s = start(ctx, "etcd", func(ctx context.Context) error {
		defer etcd.Close()
		select {
		case err := <-etcd.Err():
			return err
		case <-etcd.Server.StopNotify():
			return nil
		case <-ctx.Done():
			return nil
		}
	})
	return "unix://" + config.ListenClientUrls[0].Path, s, nil
}

// etcdConfig describes a single-member etcd.
func etcdConfig(options EtcdOptions) (*embed.Config, error) {
	sockets, err := socketDir(options.DataDir)
	if err != nil {
		return nil, err
	}
	config := loneMember()
	config.Dir = options.DataDir
	config.UnsafeNoFsync = !options.Fsync
	config.QuotaBackendBytes = etcdQuotaBytes
	config.AutoCompactionMode = "periodic"
	config.AutoCompactionRetention = "5m"
	config.EnableGRPCGateway = false
	config.WarningUnaryRequestDuration = slowRequest
	// An etcd that was stopped shortly before removes its sockets late: they must
	// not be ours.
	life := strconv.FormatInt(time.Now().UnixNano(), 36)
	config.ListenClientUrls = []url.URL{{Scheme: "unix", Path: filepath.Join(sockets, "client-"+life)}}
	config.ListenPeerUrls = []url.URL{{Scheme: "unix", Path: filepath.Join(sockets, "peer-"+life)}}
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLogger(options.Log))
	return config, nil
}

// loneMember describes the only member of a cluster. It advertises addresses that no
// other member dials.
func loneMember() *embed.Config {
	config := embed.NewConfig()
	config.Name = "default"
	config.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "localhost:2379"}}
	config.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "localhost:2380"}}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	return config
}

// socketDir returns a directory for etcd's sockets that only this user can
// enter: inside the data directory, or, when that path is too long for a
// socket, in the system's directory for temporary files.
func socketDir(dataDir string) (string, error) {
	dir := filepath.Join(dataDir, "sockets")
	if len(dir)+len("/client-")+socketLife > maxSocketPath {
		sum := sha256.Sum256([]byte(dir))
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("karmada-%d-%s", os.Getuid(), hex.EncodeToString(sum[:8])))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("creating directory of etcd's sockets: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("looking at directory of etcd's sockets: %w", err)
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !ownedByUs(info) {
		return "", fmt.Errorf("directory %s of etcd's sockets must belong to this user alone: remove it and start again", dir)
	}
	return dir, nil
}

// removeSockets removes what a killed process left behind. The caller holds the
// lock of the data directory, so nobody listens there.
func removeSockets(dir string) error {
	old, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking for old sockets of etcd: %w", err)
	}
	for _, socket := range old {
		if err := os.Remove(filepath.Join(dir, socket.Name())); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("removing an old socket of etcd: %w", err)
		}
	}
	return nil
}

func etcdLogger(sink zapcore.WriteSyncer) *zap.Logger {
	if sink == nil {
		return zap.NewNop()
	}
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, sink, zap.WarnLevel))
}
