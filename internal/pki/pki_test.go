package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
)

func TestEnsureIssuesOnlyIfNeeded(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	leaf := Leaf{CommonName: "karmada-apiserver", Hosts: []string{"localhost", "127.0.0.1"}, Lifetime: 90 * time.Minute}
	cases := map[string]struct {
		later time.Duration
		leaf  Leaf
		want  bool
	}{
		"a valid certificate is kept":                                     {leaf: leaf},
		"a certificate in the last third of its lifetime is issued again": {later: 70 * time.Minute, leaf: leaf, want: true},
		"a new host needs a new certificate":                              {leaf: Leaf{CommonName: leaf.CommonName, Hosts: []string{"10.0.0.1"}}, want: true},
		"another identity needs a new certificate":                        {leaf: Leaf{CommonName: "system:admin"}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := start
			dir := Dir{Path: t.TempDir(), Now: func() time.Time { return now }}
			ca, err := dir.EnsureAuthority("ca", "karmada")
			if err != nil {
				t.Fatal(err)
			}
			if issued, err := ca.EnsureLeaf("leaf", leaf); err != nil || !issued {
				t.Fatalf("first Ensure: issued=%v err=%v", issued, err)
			}
			now = start.Add(tc.later)
			issued, err := ca.EnsureLeaf("leaf", tc.leaf)
			if err != nil {
				t.Fatal(err)
			}
			if issued != tc.want {
				t.Errorf("issued = %v, want %v", issued, tc.want)
			}
		})
	}
}

func TestLeafIsTrustedThroughItsAuthorityOnly(t *testing.T) {
	dir := Dir{Path: t.TempDir()}
	ca, err := dir.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	other, err := dir.EnsureAuthority("front-proxy-ca", "front-proxy-ca")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.EnsureLeaf("admin", Leaf{CommonName: "system:admin", Organizations: []string{"system:masters"}}); err != nil {
		t.Fatal(err)
	}
	certs, err := certutil.CertsFromFile(dir.CertFile("admin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		authority *Authority
		trusted   bool
	}{{ca, true}, {other, false}} {
		roots := x509.NewCertPool()
		roots.AddCert(tc.authority.Cert)
		_, err := certs[0].Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if trusted := err == nil; trusted != tc.trusted {
			t.Errorf("trusted through %s = %v, want %v (%v)", tc.authority.Name, trusted, tc.trusted, err)
		}
	}
	again, err := dir.EnsureAuthority("ca", "karmada")
	if err != nil || !again.Cert.Equal(ca.Cert) {
		t.Errorf("a second EnsureAuthority made another authority (err %v)", err)
	}
}

func TestIncompleteAuthorityIsNotReplaced(t *testing.T) {
	tests := map[string]struct {
		lose func(Dir) error
		want string
	}{
		"the key is missing":                    {lose: func(dir Dir) error { return os.Remove(dir.KeyFile("ca")) }, want: "put its key"},
		"the certificate is corrupt":            {lose: func(dir Dir) error { return os.WriteFile(dir.CertFile("ca"), []byte("x"), 0o600) }, want: "loading certificate authority"},
		"only the key exists, as after a crash": {lose: func(dir Dir) error { return os.Remove(dir.CertFile("ca")) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := Dir{Path: t.TempDir()}
			if _, err := dir.EnsureAuthority("ca", "karmada"); err != nil {
				t.Fatal(err)
			}
			if err := test.lose(dir); err != nil {
				t.Fatal(err)
			}
			_, err := dir.EnsureAuthority("ca", "karmada")
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("EnsureAuthority() = %v, want %q", err, test.want)
			}
		})
	}
}

func TestWriteKubeconfigHasOneContextPerAccess(t *testing.T) {
	dir := Dir{Path: t.TempDir()}
	ca, err := dir.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.EnsureLeaf("admin", Leaf{CommonName: "system:admin"}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir.Path, "sub", "config")
	access := KubeconfigContext{Server: "https://127.0.0.1:1", CA: ca.PEM(), ClientCertFile: dir.CertFile("admin"), ClientKeyFile: dir.KeyFile("admin")}
	first, second := access, access
	first.Name, second.Name = "member1", "member2"
	if err := WriteKubeconfig(path, first, second); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != "member1" || len(config.Contexts) != 2 || config.Contexts["member2"].Cluster != "member2" {
		t.Errorf("unexpected kubeconfig: %+v", config)
	}
}

// If the process crashes between writing a pair's two files, the new key and the old certificate
// remain.
func TestCertificateWithoutMatchingKeyIsIssuedAgain(t *testing.T) {
	dir := Dir{Path: t.TempDir()}
	ca, err := dir.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	leaf := Leaf{CommonName: "karmada-apiserver"}
	for _, name := range []string{"one", "other"} {
		if _, err := ca.EnsureLeaf(name, leaf); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(dir.KeyFile("other"), dir.KeyFile("one")); err != nil {
		t.Fatal(err)
	}
	if issued, err := ca.EnsureLeaf("one", leaf); err != nil || !issued {
		t.Errorf("issued = %v (%v)", issued, err)
	}
	if _, err := tls.LoadX509KeyPair(dir.CertFile("one"), dir.KeyFile("one")); err != nil {
		t.Error(err)
	}
}
