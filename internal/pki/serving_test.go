package pki

import (
	"os"
	"testing"
	"time"
)

func TestServingReloadsRenewedCertificate(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	dir := Dir{Path: t.TempDir(), Now: clock}
	ca, err := dir.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	issue := func(name string) {
		t.Helper()
		if _, err := ca.EnsureLeaf("tls", Leaf{CommonName: name}); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir.CertFile("tls"), now, now); err != nil {
			t.Fatal(err)
		}
	}
	issue("first")
	serving, err := LoadServingCertificate(dir.CertFile("tls"), dir.KeyFile("tls"))
	if err != nil {
		t.Fatal(err)
	}
	serving.now = clock
	for _, step := range []struct {
		what   string
		change func()
		want   string
	}{
		{"unchanged files", func() {}, "first"},
		{"a new certificate", func() { issue("second") }, "second"},
		{"a truncated certificate", func() {
			if err := os.WriteFile(dir.CertFile("tls"), []byte("-----BEGIN"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "second"},
		{"a deleted certificate", func() {
			if err := os.Remove(dir.CertFile("tls")); err != nil {
				t.Fatal(err)
			}
		}, "second"},
		{"a restored certificate", func() { issue("third") }, "third"},
	} {
		now = now.Add(checkInterval)
		step.change()
		shown, err := serving.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := shown.Leaf.Subject.CommonName; got != step.want {
			t.Errorf("%s: the certificate is %q, want %q", step.what, got, step.want)
		}
	}
	if _, err := LoadServingCertificate(dir.CertFile("none"), dir.KeyFile("none")); err == nil {
		t.Error("missing files give no error")
	}
}
