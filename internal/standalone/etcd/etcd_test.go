package etcd_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/net/http2"

	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/standalone/etcd"
	"karmada.io/karmada/internal/testenv/testetcd"
)

// connectTimeout limits how long a connection and its requests may take.
const connectTimeout = 10 * time.Second

// flag returns the value of an API server flag.
func flag(t *testing.T, flags []string, name string) string {
	t.Helper()
	for _, each := range flags {
		if value, found := strings.CutPrefix(each, "--"+name+"="); found {
			return value
		}
	}
	t.Fatalf("no flag %s in %q", name, flags)
	return ""
}

// read connects to an endpoint and reads all keys.
func read(ctx context.Context, endpoint string, tlsConfig *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{endpoint}, TLS: tlsConfig, DialTimeout: connectTimeout, Logger: zap.NewNop(),
	})
	if err != nil {
		return err
	}
	_, err = client.Get(ctx, "/", clientv3.WithPrefix())
	return errors.Join(err, client.Close())
}

// serverConfig returns the client configuration of an API server with these flags.
func serverConfig(t *testing.T, flags []string) *tls.Config {
	t.Helper()
	config, err := transport.TLSInfo{
		TrustedCAFile: flag(t, flags, "etcd-cafile"), CertFile: flag(t, flags, "etcd-certfile"), KeyFile: flag(t, flags, "etcd-keyfile"),
	}.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// leafOf issues a certificate for clients and returns it.
func leafOf(t *testing.T, certs pki.Dir, authorityName string, leaf pki.Leaf) tls.Certificate {
	t.Helper()
	authority, err := certs.EnsureAuthority(authorityName, authorityName)
	if err != nil {
		t.Fatal(err)
	}
	const name = "attacker"
	if err := authority.IssueLeaf(name, leaf); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(certs.CertFile(name), certs.KeyFile(name))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestSocketRequiresClientCertificate connects as a program that can reach the socket, for example
// the program of a Pod on a simulated node.
func TestSocketRequiresClientCertificate(t *testing.T) {
	dir := t.TempDir()
	certs := pki.Dir{Path: filepath.Join(dir, "pki")}
	flags := testetcd.StartIn(t, filepath.Join(dir, "etcd"), certs).APIServerFlags()
	endpoint := flag(t, flags, "etcd-servers")
	if err := read(t.Context(), endpoint, serverConfig(t, flags)); err != nil {
		t.Fatalf("an API server cannot connect: %v", err)
	}
	agent := leafOf(t, certs, "ca", pki.Leaf{CommonName: "system:karmada:agent:east", Organizations: []string{"system:masters"}})
	server, err := tls.LoadX509KeyPair(certs.CertFile("etcd-server"), certs.KeyFile("etcd-server"))
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(endpoint, "unixs://")
	for name, test := range map[string]struct {
		config *tls.Config
		want   string
	}{
		"without a certificate":                  {&tls.Config{}, "certificate required"},
		"a certificate of the cluster authority": {&tls.Config{Certificates: []tls.Certificate{agent}}, "unknown certificate authority"},
		"the serving certificate":                {&tls.Config{Certificates: []tls.Certificate{server}}, "bad certificate"},
		"an old version of TLS":                  {&tls.Config{MaxVersion: tls.VersionTLS12}, "protocol version not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			test.config.InsecureSkipVerify = true // an attacker accepts any server
			test.config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if len(test.config.Certificates) == 0 {
					return &tls.Certificate{}, nil
				}
				return &test.config.Certificates[0], nil // also if the server does not accept its authority
			}
			conn := tls.Client(dial(t, path), test.config)
			if _, err := conn.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the connection ended with %v, want %q", err, test.want)
			}
		})
	}
	t.Run("without TLS", func(t *testing.T) {
		conn := dial(t, path)
		if _, err := conn.Write([]byte(http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
			t.Fatal(err)
		}
		// A server without TLS would respond with its settings, and keep the connection open.
		const alertBytes = 7
		if response, err := io.ReadAll(conn); err != nil && !errors.Is(err, syscall.ECONNRESET) || len(response) > alertBytes {
			t.Errorf("the response is %q (%v)", response, err)
		}
	})
}

// dial opens a connection to a unix socket, whose reads and writes end after a time.
func dial(t *testing.T, path string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(connectTimeout)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// listeningSockets returns the paths of the unix sockets on which this process listens. The path of
// an abstract socket, which every user of the machine can connect to, begins with @.
func listeningSockets(t *testing.T) []string {
	t.Helper()
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	descriptors, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, descriptor := range descriptors {
		if target, err := os.Readlink(descriptor); err == nil {
			own[target] = true
		}
	}
	var found []string
	for line := range strings.Lines(string(table)) {
		const flags, inode, path, listening = 3, 6, 7, "00010000"
		if fields := strings.Fields(line); len(fields) > path && fields[flags] == listening && own["socket:["+fields[inode]+"]"] {
			found = append(found, strings.Join(fields[path:], " "))
		}
	}
	return found
}

// An etcd with a peer listener would accept messages that write any key.
func TestSocketIsTheOnlyListener(t *testing.T) {
	dir := t.TempDir()
	without, err := etcd.Start(t.Context(), etcd.Options{DataDir: filepath.Join(dir, "without")})
	if err != nil {
		t.Fatal(err)
	}
	defer without.Close()
	if found := listeningSockets(t); found != nil {
		t.Errorf("an etcd without certificates listens on %q", found)
	}
	dataDir := filepath.Join(dir, "with")
	if err := os.Mkdir(dataDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dataDir, "etcd.sock"), nil, 0o600); err != nil { // what a killed process left
		t.Fatal(err)
	}
	with := testetcd.StartIn(t, dataDir, pki.Dir{Path: filepath.Join(dir, "pki")})
	if diff := cmp.Diff([]string{filepath.Join(dataDir, "etcd.sock")}, listeningSockets(t)); diff != "" {
		t.Errorf("listening unix sockets (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(dataDir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("other users can access the data directory: %v (%v)", info.Mode(), err)
	}
	with.Close()
	if found := listeningSockets(t); found != nil {
		t.Errorf("a closed etcd listens on %q", found)
	}
}

// TestUnusualDataDir uses paths that are longer than the kernel accepts for a socket, or that contain
// characters with a meaning in URLs and flags.
func TestUnusualDataDir(t *testing.T) {
	for name, path := range map[string]string{"long": strings.Repeat("a-long-path/", 20), "short": "x", "characters": `100% a,b "?x=1#%41`} {
		t.Run(name, func(t *testing.T) { testDataDir(t, path) })
	}
}

func testDataDir(t *testing.T, path string) {
	dir := t.TempDir()
	dataDir, certs := filepath.Join(dir, path, "etcd"), pki.Dir{Path: filepath.Join(dir, "pki")}
	for start := range 2 {
		server := testetcd.StartIn(t, dataDir, certs)
		key := fmt.Sprint("/start-", start)
		if _, err := server.Client().Put(t.Context(), key, "value"); err != nil {
			t.Fatal(err)
		}
		flags := server.APIServerFlags()
		if endpoint, err := url.Parse(flag(t, flags, "etcd-servers")); err != nil || strings.ContainsAny(endpoint.Path, `,"`) || endpoint.RawQuery != "" || endpoint.Fragment != "" {
			t.Errorf("the endpoint is %s (%v)", endpoint, err)
		}
		if err := read(t.Context(), flag(t, flags, "etcd-servers"), serverConfig(t, flags)); err != nil {
			t.Errorf("an API server cannot connect: %v", err)
		}
		saved, err := etcd.SaveSnapshot(t.Context(), dataDir, certs, filepath.Join(dir, fmt.Sprint("snapshot-", start)), "/start-")
		if err != nil || len(saved.NamesBelowPrefix) != start+1 {
			t.Errorf("the snapshot has the keys %q (%v)", saved.NamesBelowPrefix, err)
		}
		server.Close()
	}
	if _, err := etcd.SaveSnapshot(t.Context(), dataDir, certs, filepath.Join(dir, "stopped"), "/"); err == nil || !strings.Contains(err.Error(), "restart Karmada") {
		t.Errorf("a snapshot of a stopped etcd fails with %v", err)
	}
}

// TestInterruptedCreation interrupts the first start of an etcd at several times.
func TestInterruptedCreation(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond, 4 * time.Millisecond, 20 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			dir := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), delay)
			defer cancel()
			if interrupted, err := etcd.Start(ctx, etcd.Options{DataDir: dir}); err == nil {
				interrupted.Close()
			}
			for start := range 2 {
				server, err := etcd.Start(t.Context(), etcd.Options{DataDir: dir})
				if err != nil {
					t.Fatal(err)
				}
				found, err := server.Client().Get(t.Context(), "/kept")
				if err != nil || found.Count != int64(start) {
					t.Errorf("start %d has %d keys (%v)", start, found.Count, err)
				}
				if _, err := server.Client().Put(t.Context(), "/kept", "value"); err != nil {
					t.Error(err)
				}
				server.Close()
			}
		})
	}
}

// TestSnapshotWithWrongCertificates replaces the certificates while etcd runs.
func TestSnapshotWithWrongCertificates(t *testing.T) {
	dir := t.TempDir()
	dataDir, certs := filepath.Join(dir, "etcd"), pki.Dir{Path: filepath.Join(dir, "pki")}
	other := pki.Dir{Path: filepath.Join(dir, "other-pki")}
	testetcd.StartIn(t, dataDir, certs)
	testetcd.StartIn(t, filepath.Join(dir, "other"), other)
	if _, err := etcd.SaveSnapshot(t.Context(), dataDir, other, filepath.Join(dir, "snapshot"), "/"); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("the snapshot fails with %v", err)
	}
}

// TestRenewedCertificates renews both certificates while etcd runs.
func TestRenewedCertificates(t *testing.T) {
	dir := t.TempDir()
	certs := pki.Dir{Path: filepath.Join(dir, "pki")}
	flags := testetcd.StartIn(t, filepath.Join(dir, "etcd"), certs).APIServerFlags()
	connect := func() *x509.Certificate {
		// A client may open several connections at the same time.
		var served atomic.Pointer[x509.Certificate]
		config := serverConfig(t, flags)
		config.VerifyConnection = func(state tls.ConnectionState) error {
			served.Store(state.PeerCertificates[0])
			return nil
		}
		if err := read(t.Context(), flag(t, flags, "etcd-servers"), config); err != nil {
			t.Fatal(err)
		}
		return served.Load()
	}
	before := connect()
	renewed, err := etcd.Certificates(certs, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range renewed {
		if err := each.Authority.IssueLeaf(each.Name, each.Leaf); err != nil {
			t.Fatal(err)
		}
	}
	if after := connect(); after.Equal(before) {
		t.Error("etcd serves the old certificate")
	}
}

func TestRunEndsWithContext(t *testing.T) {
	server := testetcd.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("etcd ended with %v", err)
	}
	if found := listeningSockets(t); found != nil {
		t.Errorf("etcd still listens on %q", found)
	}
}
