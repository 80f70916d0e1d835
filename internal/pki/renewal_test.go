package pki

import (
	"crypto/ecdsa"
	"crypto/tls"
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
	_, before, err := dir.load("leaf")
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(50 * time.Minute)
	if issued, err := ca.EnsureLeaf("leaf", leaf); err != nil || !issued {
		t.Fatalf("issued = %v, err = %v", issued, err)
	}
	_, after, err := dir.load("leaf")
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
