package pki

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRenewalTimeOfAnyLifetime(t *testing.T) {
	root, count := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		count++
		path := filepath.Join(root, strconv.Itoa(count))
		lifetime := time.Duration(rapid.Int64Range(int64(3*time.Second), int64(10*365*24*time.Hour)).Draw(t, "lifetime"))
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		dir := Dir{Path: path, Now: func() time.Time { return now }}
		ca, err := dir.EnsureAuthority("ca", "karmada")
		if err != nil {
			t.Fatal(err)
		}
		leaf := Leaf{CommonName: "system:admin", Lifetime: lifetime}
		if _, err := ca.EnsureLeaf("leaf", leaf); err != nil {
			t.Fatal(err)
		}
		due, err := dir.RenewalTime("leaf")
		if err != nil {
			t.Fatal(err)
		}
		if early, late := now.Add(lifetime/2), now.Add(lifetime*7/10); due.Before(early.Add(-time.Second)) || due.After(late) {
			t.Fatalf("a certificate with a lifetime of %s is renewed after %s", lifetime, due.Sub(now))
		}
		if issued, err := ca.EnsureLeaf("leaf", leaf); err != nil || issued {
			t.Fatalf("the certificate is issued again at once: %v %v", issued, err)
		}
		now = due
		if issued, err := ca.EnsureLeaf("leaf", leaf); err != nil || !issued {
			t.Fatalf("the certificate is not issued at its renewal time: %v %v", issued, err)
		}
	})
}

func TestRenewalKeepsKey(t *testing.T) {
	now := time.Now()
	dir := Dir{Path: t.TempDir(), Now: func() time.Time { return now }}
	ca, err := dir.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	leaf := Leaf{CommonName: "karmada-apiserver", Hosts: []string{"localhost"}, Lifetime: time.Hour}
	if _, err := ca.EnsureLeaf("leaf", leaf); err != nil {
		t.Fatal(err)
	}
	before, err := dir.store().loadKey("leaf")
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(50 * time.Minute)
	if issued, err := ca.EnsureLeaf("leaf", leaf); err != nil || !issued {
		t.Fatalf("issued = %v, err = %v", issued, err)
	}
	after, err := dir.store().loadKey("leaf")
	if err != nil {
		t.Fatal(err)
	}
	if key, ok := before.Public().(*ecdsa.PublicKey); !ok || !key.Equal(after.Public()) {
		t.Error("the key has changed")
	}
	if _, err := tls.LoadX509KeyPair(dir.CertFile("leaf"), dir.KeyFile("leaf")); err != nil {
		t.Errorf("certificate and key do not match: %v", err)
	}
}

func TestUsagesLimitCertificates(t *testing.T) {
	dir := Dir{Path: t.TempDir()}
	ca, err := dir.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.EnsureLeaf("server", Leaf{CommonName: "server"}); err != nil {
		t.Fatal(err)
	}
	limited := Leaf{CommonName: "server", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if issued, err := ca.EnsureLeaf("server", limited); err != nil || !issued {
		t.Fatalf("other usages: issued = %v, err = %v", issued, err)
	}
	server, err := dir.store().load("server")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	for usage, valid := range map[x509.ExtKeyUsage]bool{x509.ExtKeyUsageServerAuth: true, x509.ExtKeyUsageClientAuth: false} {
		_, err := server.cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}})
		if (err == nil) != valid {
			t.Errorf("usage %d: %v", usage, err)
		}
	}
}

func TestRenewAllReissuesExpiringCertificates(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	dir := Dir{Path: t.TempDir()}
	ca, err := dir.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	certificates := []Renewable{{Authority: ca, Name: "leaf", Leaf: Leaf{CommonName: "leaf", Lifetime: 3 * time.Second}}}
	if _, err := EnsureAll(certificates); err != nil {
		t.Fatal(err)
	}
	first, err := dir.store().load("leaf")
	if err != nil {
		t.Fatal(err)
	}
	RenewAll(ctx, certificates, func(err error) error {
		if current, loadErr := dir.store().load("leaf"); err != nil || loadErr != nil {
			t.Errorf("renewal: %v, %v", err, loadErr)
		} else if current.cert.SerialNumber.Cmp(first.cert.SerialNumber) != 0 {
			cancel()
		}
		return err
	})
	if ctx.Err() != context.Canceled {
		t.Error("the certificate was not issued again")
	}
}
