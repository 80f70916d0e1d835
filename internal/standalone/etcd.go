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
	// slowRequestThreshold is the duration of a request after which etcd logs a warning.
	slowRequestThreshold = 300 * time.Millisecond
	// socketSuffixLength is the length of the suffix of socket names, which differs for each
	// start.
	socketSuffixLength = 13
	// maxSocketPath is the longest path of a unix socket that the kernel accepts.
	maxSocketPath = 100
)

// EtcdOptions configure where and how etcd stores data.
type EtcdOptions struct {
	// DataDir is the data directory. It is created if it does not exist.
	DataDir string
	// Fsync makes etcd survive a crash of the machine. Without it etcd is faster and survives
	// only a crash of the process.
	Fsync bool
	// Log receives the log of etcd. nil discards it.
	Log zapcore.WriteSyncer
}

// startEtcd runs a single-member etcd and returns the endpoint of its client API when it is
// ready. The endpoint is a unix socket.
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
	s = startServer(ctx, "etcd", func(ctx context.Context) error {
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

// etcdConfig returns the configuration of a single-member etcd.
func etcdConfig(options EtcdOptions) (*embed.Config, error) {
	sockets, err := socketDir(options.DataDir)
	if err != nil {
		return nil, err
	}
	config := newSingleMemberConfig()
	config.Dir = options.DataDir
	config.UnsafeNoFsync = !options.Fsync
	config.QuotaBackendBytes = etcdQuotaBytes
	config.AutoCompactionMode = "periodic"
	config.AutoCompactionRetention = "5m"
	config.EnableGRPCGateway = false
	config.WarningUnaryRequestDuration = slowRequestThreshold
	// An etcd that was stopped shortly before may still remove its sockets. So each start uses new
	// names for the sockets.
	suffix := strconv.FormatInt(time.Now().UnixNano(), 36)
	config.ListenClientUrls = []url.URL{{Scheme: "unix", Path: filepath.Join(sockets, "client-"+suffix)}}
	config.ListenPeerUrls = []url.URL{{Scheme: "unix", Path: filepath.Join(sockets, "peer-"+suffix)}}
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLogger(options.Log))
	return config, nil
}

// newSingleMemberConfig returns the configuration of an etcd cluster with one member. The member
// advertises addresses, but there is no other member that connects to them.
func newSingleMemberConfig() *embed.Config {
	config := embed.NewConfig()
	config.Name = "default"
	config.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "localhost:2379"}}
	config.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "localhost:2380"}}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	return config
}

// socketDir returns a directory for the sockets of etcd that only this user can enter. The socket
// directory is in the data directory. If that path is too long for a socket, the socket directory
// is in the system's directory for temporary files.
func socketDir(dataDir string) (string, error) {
	dir := filepath.Join(dataDir, "sockets")
	if len(dir)+len("/client-")+socketSuffixLength > maxSocketPath {
		sum := sha256.Sum256([]byte(dir))
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("karmada-%d-%s", os.Getuid(), hex.EncodeToString(sum[:8])))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("creating the directory for the sockets of etcd: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("reading the mode of the directory for the sockets of etcd: %w", err)
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !isOwnedByCurrentUser(info) {
		return "", fmt.Errorf("the directory %s for the sockets of etcd must be accessible by this user only: remove it and start again", dir)
	}
	return dir, nil
}

// removeSockets removes the sockets that a killed process left. The caller must hold the lock of
// the data directory, so that no other process uses these sockets.
func removeSockets(dir string) error {
	old, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("listing the old sockets of etcd: %w", err)
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
