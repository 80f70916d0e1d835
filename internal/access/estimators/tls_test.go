package estimators

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"karmada.io/karmada/internal/pki"
)

// issued are the certificates of one authority.
type issued struct {
	dir pki.Dir
	ca  *pki.Authority
}

func newIssued(t *testing.T) issued {
	t.Helper()
	dir := pki.Dir{Path: t.TempDir()}
	ca, err := dir.EnsureAuthority("ca", "estimators")
	if err != nil {
		t.Fatal(err)
	}
	for name, leaf := range map[string]pki.Leaf{
		"server": {CommonName: "estimator", Hosts: []string{"127.0.0.1"}}, "client": {CommonName: "scheduler"},
		"elsewhere": {CommonName: "estimator", Hosts: []string{"127.0.0.2"}},
		"named":     {CommonName: "estimator", Hosts: []string{"estimator-m1.karmada-system.svc"}},
		"wildcard":  {CommonName: "estimator", Hosts: []string{"*.karmada-system.svc"}},
		"other":     {CommonName: "estimator", Hosts: []string{"estimator-m2.karmada-system.svc"}},
	} {
		if _, err := ca.EnsureLeaf(name, leaf); err != nil {
			t.Fatal(err)
		}
	}
	return issued{dir: dir, ca: ca}
}

// secured returns an option of a server that requires client certificates of the authority.
func (i issued) secured(t *testing.T, name string) grpc.ServerOption {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(i.dir.CertFile(name), i.dir.KeyFile(name))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(i.ca.Cert)
	return grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}))
}

func (i issued) files() ClientTLS {
	return ClientTLS{CAFile: i.dir.CertFile("ca"), CertFile: i.dir.CertFile("client"), KeyFile: i.dir.KeyFile("client")}
}

func TestTLS(t *testing.T) {
	const refused = "the server closes new connections: check that both sides or none use TLS, and that the server accepts the client certificate"
	ours, other := newIssued(t), newIssued(t)
	tests := map[string]struct {
		server string
		files  func(*ClientTLS)
		want   string
	}{
		"both certificates are right":                {"server", func(*ClientTLS) {}, "4 (remote)"},
		"the server has a foreign certificate":       {"server", func(f *ClientTLS) { f.CAFile = other.dir.CertFile("ca") }, "certificate signed by unknown authority"},
		"the server has the name of another host":    {"elsewhere", func(*ClientTLS) {}, "certificate is valid for 127.0.0.2, not 127.0.0.1"},
		"the server has the name of its Service":     {"named", func(*ClientTLS) {}, "4 (remote)"},
		"the server has the name of all Services":    {"wildcard", func(*ClientTLS) {}, "4 (remote)"},
		"the server has the name of another Service": {"other", func(*ClientTLS) {}, "cannot validate certificate for 127.0.0.1"},
		"a foreign server has the right name":        {"named", func(f *ClientTLS) { f.CAFile = other.dir.CertFile("ca") }, "certificate signed by unknown authority"},
		"a foreign certificate is accepted":          {"server", func(f *ClientTLS) { f.CAFile, f.SkipVerify = "", true }, "4 (remote)"},
		"the client has no certificate":              {"server", func(f *ClientTLS) { f.CertFile, f.KeyFile = "", "" }, refused},
		"the client has a foreign certificate":       {"server", func(f *ClientTLS) { f.CertFile, f.KeyFile = other.dir.CertFile("client"), other.dir.KeyFile("client") }, refused},
		"the client does not encrypt its connection": {"server", func(f *ClientTLS) { *f = ClientTLS{} }, refused},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			listener, files := listen(t), ours.files()
			test.files(&files)
			serve(t, listener, answering(4), ours.secured(t, test.server))
			pool := newTestPool(t, func(o *PoolOptions) { o.TLS = files }, serviceFor("m1", listener.Addr().String()))
			got := pool.limits(t, webDemand(), "m1")[0]
			if !strings.Contains(got, test.want) {
				t.Errorf("%s, want %q", got, test.want)
			}
		})
	}
}

// The files are replaced while the program runs. The server restarts with the new certificate.
func TestRenewedCertificates(t *testing.T) {
	old, renewed := newIssued(t), newIssued(t)
	listener := listen(t)
	address := listener.Addr().String()
	running := serve(t, listener, answering(4), old.secured(t, "server"))
	files := old.files()
	pool := newTestPool(t, func(o *PoolOptions) { o.TLS = files }, serviceFor("m1", address))
	if got := pool.limits(t, webDemand(), "m1")[0]; got != "4 (remote)" {
		t.Fatalf("before: %s", got)
	}
	for from, to := range map[string]string{
		renewed.dir.CertFile("ca"): files.CAFile, renewed.dir.CertFile("client"): files.CertFile, renewed.dir.KeyFile("client"): files.KeyFile,
	} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	running.Stop()
	again, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, again, answering(5), renewed.secured(t, "server"))
	pool.clusters["m1"].reset()
	if got := pool.limits(t, webDemand(), "m1")[0]; got != "5 (remote)" {
		t.Errorf("after: %s", got)
	}
}

func TestUnusableFiles(t *testing.T) {
	ours := newIssued(t)
	tests := map[string]struct {
		files ClientTLS
		want  string
	}{
		"no TLS":                 {ClientTLS{}, ""},
		"a missing authority":    {ClientTLS{CAFile: "/none"}, "reading the authorities of estimators: open /none: no such file or directory"},
		"no certificate in file": {ClientTLS{CAFile: ours.dir.KeyFile("ca")}, ours.dir.KeyFile("ca") + " contains no PEM certificate: it must contain the authorities of the certificates of estimators"},
		"a missing certificate":  {ClientTLS{SkipVerify: true, CertFile: "/a", KeyFile: "/b"}, "loading the client certificate /a with key /b for estimators: open /a: no such file or directory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := NewPool(PoolOptions{TLS: test.files}); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
