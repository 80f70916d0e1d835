package estimator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/util/wait"

	"karmada.io/karmada/internal/access/estimators/estimatorpb"
	"karmada.io/karmada/internal/pki"
)

// issuer is an authority with a certificate for the name "leaf".
type issuer struct {
	dir       pki.Dir
	authority *pki.Authority
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	dir := pki.Dir{Path: t.TempDir()}
	authority, err := dir.EnsureAuthority("ca", "test")
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{dir: dir, authority: authority}
	i.issue(t, "leaf")
	return i
}

func (i *issuer) issue(t *testing.T, commonName string) {
	t.Helper()
	if _, err := i.authority.EnsureLeaf("leaf", pki.Leaf{CommonName: commonName, Hosts: []string{"127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
}

// certificates returns the files of a server with the certificate of this issuer. clients issues
// the certificates of clients.
func (i *issuer) certificates(clients *issuer) Certificates {
	return Certificates{CertFile: i.dir.CertFile("leaf"), KeyFile: i.dir.KeyFile("leaf"), ClientCAFile: clients.dir.CertFile("ca")}
}

// clientTLS returns the configuration of a client that trusts servers of this issuer. clients may
// be nil: then the client has no certificate.
func (i *issuer) clientTLS(t *testing.T, clients *issuer) *tls.Config {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(i.authority.PEM())
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if clients != nil {
		certificate, err := tls.LoadX509KeyPair(clients.dir.CertFile("leaf"), clients.dir.KeyFile("leaf"))
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return config
}

// ask sends a request over a new connection. It does not wait until the connection is ready.
func (r *runningServer) ask(t *testing.T, security credentials.TransportCredentials) error {
	t.Helper()
	connection, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(security))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	_, err = estimatorpb.NewEstimatorClient(connection).MaxAvailableReplicas(ctx, &estimatorpb.MaxAvailableReplicasRequest{Cluster: "east"})
	return err
}

func TestConnectionsAreVerified(t *testing.T) {
	servers, right, wrong := newIssuer(t), newIssuer(t), newIssuer(t)
	config := func(clients *issuer, change ...func(*tls.Config)) credentials.TransportCredentials {
		c := servers.clientTLS(t, clients)
		for _, each := range change {
			each(c)
		}
		return credentials.NewTLS(c)
	}
	unverified := servers.certificates(right)
	unverified.SkipClientVerify = true
	withoutCA := servers.certificates(right)
	withoutCA.ClientCAFile = ""
	tests := map[string]struct {
		certificates Certificates
		client       credentials.TransportCredentials
		isAccepted   bool
	}{
		"the right certificate":              {servers.certificates(right), config(right), true},
		"a certificate of another authority": {servers.certificates(right), config(wrong), false},
		"no certificate":                     {servers.certificates(right), config(nil), false},
		"a connection without TLS":           {servers.certificates(right), insecure.NewCredentials(), false},
		"TLS 1.2":                            {servers.certificates(right), config(right, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), false},
		"clients are not verified":           {unverified, config(nil), true},
		"no authority for clients":           {withoutCA, config(nil), true},
		"TLS with a server without TLS":      {Certificates{}, config(right), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			member, _ := clients(t, node("a", "cpu=1 pods=1"))
			s := start(t, Options{Clients: member, Certificates: test.certificates})
			if err := s.ask(t, test.client); (err == nil) != test.isAccepted {
				t.Errorf("error %v, want accepted: %t", err, test.isAccepted)
			}
		})
	}
}

func TestChangedCertificatesAreUsed(t *testing.T) {
	servers, before, after := newIssuer(t), newIssuer(t), newIssuer(t)
	certificates := servers.certificates(before)
	certificates.ClientCAFile = filepath.Join(t.TempDir(), "clients.crt")
	writeFile(t, certificates.ClientCAFile, before.authority.PEM())
	member, _ := clients(t, node("a", "cpu=1 pods=1"))
	s := start(t, Options{Clients: member, Certificates: certificates})
	asks := func(clients *issuer) error { return s.ask(t, credentials.NewTLS(servers.clientTLS(t, clients))) }
	if err := asks(before); err != nil {
		t.Fatal(err)
	}
	writeFile(t, certificates.ClientCAFile, after.authority.PEM())
	if err := asks(after); err != nil {
		t.Errorf("a client of the new authority: %v", err)
	}
	if err := asks(before); err == nil {
		t.Error("a client of the old authority is accepted")
	}
	writeFile(t, certificates.ClientCAFile, []byte("no certificate"))
	if err := asks(after); err != nil {
		t.Errorf("a damaged file ended the trust in the last authority: %v", err)
	}

	servers.issue(t, "renewed")
	served := ""
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, testTimeout, true, func(context.Context) (bool, error) {
		config := servers.clientTLS(t, after)
		config.VerifyConnection = func(state tls.ConnectionState) error {
			served = state.PeerCertificates[0].Subject.CommonName
			return nil
		}
		return s.ask(t, credentials.NewTLS(config)) == nil && served == "renewed", nil
	})
	if err != nil {
		t.Errorf("the certificate has the common name %q after %s", served, testTimeout)
	}
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedAuthorityIsRejectedAtStart(t *testing.T) {
	servers := newIssuer(t)
	certificates := servers.certificates(servers)
	for name, path := range map[string]string{"a missing file": "missing.crt", "a key": servers.dir.KeyFile("ca")} {
		t.Run(name, func(t *testing.T) {
			certificates.ClientCAFile = path
			if _, err := New(Options{Cluster: "east", Certificates: certificates}); err == nil {
				t.Error("no error")
			}
		})
	}
}
