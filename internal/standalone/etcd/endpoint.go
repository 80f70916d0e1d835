package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"karmada.io/karmada/internal/pki"
)

const (
	// socketName is the socket's name in the data directory. Clients verify it in the serving certificate,
	// because etcd clients verify the last element of a socket's path.
	socketName = "etcd.sock"
	// minKeepaliveInterval is the shortest interval at which etcd accepts keepalive pings. It is the
	// default of the etcd program. API servers send a ping every 30 s.
	minKeepaliveInterval = 5 * time.Second
)

// Names of the certificates in Options.Certs. The authority signs nothing else, so that a cluster's other
// certificates, such as agents', give no access to etcd.
const (
	certAuthority = "etcd-ca"
	certServer    = "etcd-server"
	certClient    = "etcd-client"
)

// Certificates creates etcd's certificate authority in certs if it does not exist. It returns the
// certificates of the socket and its clients, which the caller must issue and renew. lifetime is their
// validity; 0 means pki.DefaultLeafLifetime.
func Certificates(certs pki.Dir, lifetime time.Duration) ([]pki.Renewable, error) {
	authority, err := certs.EnsureAuthority(certAuthority, certAuthority)
	if err != nil {
		return nil, err
	}
	return []pki.Renewable{
		{Authority: authority, Name: certServer, Leaf: pki.Leaf{
			CommonName: certServer, Hosts: []string{socketName}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, Lifetime: lifetime,
		}},
		{Authority: authority, Name: certClient, Leaf: pki.Leaf{
			CommonName: certClient, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, Lifetime: lifetime,
		}},
	}, nil
}

// openSocketDir opens the data directory for its socket.
func openSocketDir(dataDir string) (SocketDir, error) {
	return OpenSocketDir(dataDir, socketName)
}

// socketURL returns the URL of a socket, in the notation of etcd's clients.
func socketURL(dir SocketDir) string { return "unixs://" + dir.Path() }

// endpoint serves etcd's API on the socket.
type endpoint struct {
	dir    SocketDir
	certs  pki.Dir
	server *grpc.Server
	// failed receives the error of a server that ends by itself.
	failed chan error
}

// serve opens the socket and serves the API of etcd on it. A socket that a killed process left is
// removed.
func serve(etcd *etcdserver.EtcdServer, dataDir string, certs pki.Dir) (*endpoint, error) {
	tlsConfig, err := transport.TLSInfo{
		CertFile: certs.CertFile(certServer), KeyFile: certs.KeyFile(certServer),
		TrustedCAFile: certs.CertFile(certAuthority), ClientCertAuth: true, MinVersion: tls.VersionTLS13,
	}.ServerConfig()
	if err != nil {
		return nil, fmt.Errorf("loading the certificates of etcd: %w", err)
	}
	dir, err := openSocketDir(dataDir)
	if err != nil {
		return nil, err
	}
	listener, err := dir.Listen()
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	e := &endpoint{
		dir: dir, certs: certs, failed: make(chan error, 1),
		server: v3rpc.Server(etcd, tlsConfig, nil, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minKeepaliveInterval})),
	}
	go func() {
		if err := e.server.Serve(listener); err != nil {
			e.failed <- err
		}
	}()
	return e, nil
}

// close closes the socket and all its connections, and removes the socket.
func (e *endpoint) close() {
	e.server.Stop()
	_ = e.dir.Close()
}
