// Package etcd runs a single-member etcd in this process, and saves and restores its data.
//
// Code in the package that started an etcd calls it directly. API servers and other processes connect to a
// unix socket in the data directory, which only the directory's owner can reach and which requires a client
// certificate from etcd's own certificate authority. There is no other listener. In particular, there is no
// peer listener, because a single member has no peers, and every client of a peer listener could write any
// key.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"karmada.io/karmada/internal/pki"
)

const (
	readyTimeout = 60 * time.Second
	quotaBytes   = 8 << 30
	// slowRequestThreshold is the duration of a request after which etcd logs a warning.
	slowRequestThreshold = 300 * time.Millisecond
)

// Options configure an etcd.
type Options struct {
	// DataDir is the data directory. Start creates it if it does not exist, and makes it accessible
	// to its owner only. The caller must hold the lock of the directory that contains DataDir.
	DataDir string
	// Certs contains the certificates of the socket; see Certificates. With an empty path, etcd has
	// no socket and only Server.Client can access it.
	Certs pki.Dir
	// Fsync makes etcd survive a crash of the machine. Without it etcd is faster and survives
	// only a crash of the process.
	Fsync bool
	// Log receives etcd's warnings. nil discards them.
	Log zapcore.WriteSyncer
}

// Server is a running etcd.
type Server struct {
	etcd   *embed.Etcd
	client *clientv3.Client
	// endpoint is nil if etcd has no socket.
	endpoint  *endpoint
	closeOnce sync.Once
}

// Start starts an etcd, and returns when it is ready. The caller must call Close or Run. The end of
// ctx ends only the start.
func Start(ctx context.Context, o Options) (*Server, error) {
	if err := ensurePrivateDir(o.DataDir); err != nil {
		return nil, err
	}
	if err := ensureMember(ctx, o); err != nil {
		return nil, err
	}
	etcd, err := startEmbedded(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Server{etcd: etcd, client: v3client.New(etcd.Server)}
	if o.Certs.Path == "" {
		return s, nil
	}
	if s.endpoint, err = serve(etcd.Server, o.DataDir, o.Certs); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// startEmbedded starts an etcd without listeners, and returns when it is ready.
func startEmbedded(ctx context.Context, o Options) (*embed.Etcd, error) {
	config := newConfig()
	config.Dir = o.DataDir
	config.UnsafeNoFsync = !o.Fsync
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newLogger(o.Log))
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("starting etcd in %s: %w", o.DataDir, err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err = <-etcd.Err():
		err = fmt.Errorf("starting etcd in %s: %w", o.DataDir, err)
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(readyTimeout):
		err = fmt.Errorf("etcd in %s is not ready after %s", o.DataDir, readyTimeout)
	}
	etcd.Close()
	return nil, err
}

// newConfig returns the configuration of an etcd cluster with one member and without listeners. The
// member advertises addresses because etcd requires them, but no program connects to them.
func newConfig() *embed.Config {
	config := embed.NewConfig()
	config.Name = "default"
	config.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "localhost:2379"}}
	config.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "localhost:2380"}}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.ListenPeerUrls, config.ListenClientUrls = nil, nil
	config.EnableGRPCGateway = false
	config.QuotaBackendBytes = quotaBytes
	config.AutoCompactionMode = "periodic"
	config.AutoCompactionRetention = "5m"
	config.WarningUnaryRequestDuration = slowRequestThreshold
	return config
}

func newLogger(sink zapcore.WriteSyncer) *zap.Logger {
	if sink == nil {
		return zap.NewNop()
	}
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, sink, zap.WarnLevel))
}

// ensurePrivateDir creates a directory that only its owner can access. It removes the permissions of
// other users from an existing directory.
func ensurePrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating the data directory of etcd: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("restricting the data directory of etcd to its owner: %w", err)
	}
	return nil
}

// Client returns a client that calls etcd without a connection. Close closes it.
func (s *Server) Client() *clientv3.Client { return s.client }

// APIServerFlags returns the flags with which an API server connects to etcd. Without a socket there
// are none.
func (s *Server) APIServerFlags() []string {
	if s.endpoint == nil {
		return nil
	}
	certs := s.endpoint.certs
	return []string{
		"--etcd-servers=" + socketURL(s.endpoint.dir),
		"--etcd-cafile=" + certs.CertFile(certAuthority),
		"--etcd-certfile=" + certs.CertFile(certClient),
		"--etcd-keyfile=" + certs.KeyFile(certClient),
	}
}

// Run waits until ctx ends or etcd stops by itself, and closes etcd. In the second case, it returns
// an error.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	var serving <-chan error
	if s.endpoint != nil {
		serving = s.endpoint.failed
	}
	select {
	case err := <-serving:
		return fmt.Errorf("serving etcd: %w", err)
	case err := <-s.etcd.Err():
		return fmt.Errorf("running etcd: %w", err)
	case <-s.etcd.Server.StopNotify():
		return errors.New("etcd stopped by itself")
	case <-ctx.Done():
		return nil
	}
}

// Close stops etcd. Further calls do nothing.
func (s *Server) Close() {
	s.closeOnce.Do(func() {
		if s.endpoint != nil {
			s.endpoint.close()
		}
		if s.client != nil {
			_ = s.client.Close()
		}
		s.etcd.Close()
	})
}
