package pki

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/keyutil"
)

var testNow = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// newGiven returns an authority with an RSA key. edit changes its certificate's template.
func newGiven(t testing.TB, edit func(*x509.Certificate)) GivenAuthority {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Corporate CA"},
		NotBefore: testNow.Add(-time.Hour), NotAfter: testNow.Add(time.Hour * 24 * 365),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	if edit != nil {
		edit(template)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return GivenAuthority{Cert: Given{"own.crt", EncodeCerts(raw)}, Key: Given{"own.key", encodeKey(t, key)}}
}

func encodeKey(t testing.TB, key crypto.PrivateKey) []byte {
	t.Helper()
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestCheckOfGivenAuthority(t *testing.T) {
	valid, other := newGiven(t, nil), newGiven(t, nil)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	encrypted := pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")})
	tests := map[string]struct {
		given  GivenAuthority
		want   error
		source string
		remedy string
	}{
		"an authority with an RSA key is accepted":              {given: valid},
		"a chain whose first certificate has the key":           {given: GivenAuthority{Given{"own.crt", join(valid.Cert.PEM, other.Cert.PEM)}, valid.Key}},
		"a key after the parameters of a curve":                 {given: GivenAuthority{valid.Cert, Given{"own.key", join(pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte("x")}), valid.Key.PEM)}}},
		"without a key usage, all usages are permitted":         {given: newGiven(t, func(c *x509.Certificate) { c.KeyUsage = 0 })},
		"an extended usage for servers and clients suffices":    {given: newGiven(t, func(c *x509.Certificate) { c.ExtKeyUsage = Leaf{}.usages() })},
		"the certificate is missing":                            {given: GivenAuthority{Given{Source: "own.crt"}, valid.Key}, want: ErrEmpty, source: "own.crt"},
		"the key is missing":                                    {given: GivenAuthority{valid.Cert, Given{Source: "own.key"}}, want: ErrEmpty, source: "own.key"},
		"the certificate is no PEM":                             {given: GivenAuthority{Given{"own.crt", []byte("x")}, valid.Key}, want: ErrNoCertificate, source: "own.crt"},
		"the key is no PEM":                                     {given: GivenAuthority{valid.Cert, Given{"own.key", []byte("x")}}, want: ErrNoKey, source: "own.key"},
		"the key is a certificate":                              {given: GivenAuthority{valid.Cert, Given{"own.key", valid.Cert.PEM}}, want: ErrNoKey, source: "own.key"},
		"the key is encrypted":                                  {given: GivenAuthority{valid.Cert, Given{"own.key", encrypted}}, want: ErrEncryptedKey, source: "own.key", remedy: "decrypt it"},
		"the key belongs to another certificate":                {given: GivenAuthority{valid.Cert, other.Key}, want: ErrKeyMismatch, source: "own.key", remedy: "CN=Corporate CA"},
		"the key belongs to a later certificate of the chain":   {given: GivenAuthority{Given{"own.crt", join(other.Cert.PEM, valid.Cert.PEM)}, valid.Key}, want: ErrKeyMismatch, source: "own.key", remedy: "certificate 2 of own.crt"},
		"the certificate is not of an authority":                {given: newGiven(t, func(c *x509.Certificate) { c.IsCA = false }), want: ErrNotAnAuthority, source: "own.crt"},
		"the authority may not sign certificates":               {given: newGiven(t, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign }), want: ErrCannotSign, source: "own.crt"},
		"the authority is for servers only":                     {given: newGiven(t, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), want: ErrLimitedUsages, source: "own.crt"},
		"the authority has expired":                             {given: newGiven(t, func(c *x509.Certificate) { c.NotAfter = testNow.Add(-time.Minute) }), want: ErrExpired, source: "own.crt"},
		"the authority is valid only in the future":             {given: newGiven(t, func(c *x509.Certificate) { c.NotBefore = testNow.Add(time.Minute) }), want: ErrNotYetValid, source: "own.crt", remedy: "clock"},
		"a mistake in the key is reported before a late expiry": {given: GivenAuthority{newGiven(t, func(c *x509.Certificate) { c.NotAfter = testNow }).Cert, other.Key}, want: ErrKeyMismatch, source: "own.key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.given.Check(testNow)
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			var given *GivenError
			if test.want == nil {
				return
			}
			if !errors.As(err, &given) || given.Source != test.source || given.Remedy == "" || !strings.Contains(given.Remedy, test.remedy) {
				t.Errorf("got %q, want the source %q and the remedy %q", err, test.source, test.remedy)
			}
		})
	}
}

func TestImportAuthority(t *testing.T) {
	given, other := newGiven(t, nil), newGiven(t, nil)
	tests := map[string]struct {
		existing  Memory
		want      error
		imported  bool
		isDamaged bool
	}{
		"an empty store":                     {existing: Memory{}, imported: true},
		"the same authority":                 {existing: Memory{"ca.crt": given.Cert.PEM, "ca.key": given.Key.PEM}},
		"the same authority without its key": {existing: Memory{"ca.crt": given.Cert.PEM}, imported: true},
		"an authority that is trusted only":  {existing: Memory{"ca.crt": append(bytes.Clone(other.Cert.PEM), given.Cert.PEM...), "ca.key": other.Key.PEM}},
		"another authority":                  {existing: Memory{"ca.crt": other.Cert.PEM, "ca.key": other.Key.PEM}, want: ErrOtherAuthority},
		"a file that is no certificate":      {existing: Memory{"ca.crt": []byte("x")}, isDamaged: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := test.existing["ca.crt"]
			store := Store{Files: test.existing, Now: func() time.Time { return testNow }}
			imported, err := store.ImportAuthority("ca", given)
			if test.isDamaged {
				if err == nil || imported {
					t.Errorf("imported %v, error %v", imported, err)
				}
				return
			}
			if imported != test.imported || !errors.Is(err, test.want) {
				t.Fatalf("imported %v, error %v", imported, err)
			}
			if before != nil && !bytes.Equal(before, test.existing["ca.crt"]) {
				t.Error("the certificate has changed")
			}
			if err != nil || bytes.HasPrefix(before, other.Cert.PEM) {
				return
			}
			authority, err := store.LoadAuthority("ca")
			if err != nil {
				t.Fatal(err)
			}
			if issued, err := authority.EnsureLeaf("leaf", Leaf{CommonName: "leaf"}); err != nil || !issued {
				t.Errorf("issued %v, error %v", issued, err)
			}
		})
	}
}

func TestAuthorityWithoutKeyChecksButIssuesNothing(t *testing.T) {
	files := Memory{}
	store := Store{Files: files, Now: func() time.Time { return testNow }}
	authority, err := store.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	leaf := Leaf{CommonName: "leaf", Hosts: []string{"localhost"}}
	if _, err := authority.EnsureLeaf("leaf", leaf); err != nil {
		t.Fatal(err)
	}
	delete(files, "ca.key")
	keyless, err := store.LoadAuthority("ca")
	if err != nil {
		t.Fatal(err)
	}
	if issued, err := keyless.EnsureLeaf("leaf", leaf); err != nil || issued {
		t.Errorf("a valid certificate: issued %v, error %v", issued, err)
	}
	leaf.Hosts = append(leaf.Hosts, "karmada.example.org")
	var missing *MissingKeyError
	if _, err := keyless.EnsureLeaf("leaf", leaf); !errors.As(err, &missing) || missing.KeyFile != "ca.key" {
		t.Errorf("a certificate that lacks a name: error %v", err)
	}
	if _, err := store.EnsureAuthority("ca", "karmada"); !errors.As(err, &missing) {
		t.Errorf("ensuring an authority without key: error %v", err)
	}
}

func TestAuthorityLifetime(t *testing.T) {
	store := Store{Files: Memory{}, Now: func() time.Time { return testNow }, AuthorityLifetime: time.Hour}
	authority, err := store.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	if want := testNow.Add(time.Hour); !authority.Cert.NotAfter.Equal(want) {
		t.Errorf("the authority is valid until %s, want %s", authority.Cert.NotAfter, want)
	}
}

func TestRenewalReason(t *testing.T) {
	leaf := Leaf{CommonName: "system:admin", Organizations: []string{"system:masters"}, Hosts: []string{"localhost", "127.0.0.1"}, Lifetime: 300 * 24 * time.Hour}
	with := func(edit func(*Leaf)) Leaf {
		changed := leaf
		edit(&changed)
		return changed
	}
	tests := map[string]struct {
		change func(Memory)
		later  time.Duration
		leaf   Leaf
		want   string
	}{
		"a valid certificate":                       {leaf: leaf},
		"an organization without a name":            {leaf: with(func(l *Leaf) { l.Organizations = []string{"system:masters", ""} })},
		"usages in another order":                   {leaf: with(func(l *Leaf) { l.Usages = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} })},
		"no certificate":                            {change: func(m Memory) { delete(m, "leaf.crt") }, leaf: leaf, want: "is missing"},
		"no key":                                    {change: func(m Memory) { delete(m, "leaf.key") }, leaf: leaf, want: "has no key"},
		"a key that is no PEM":                      {change: func(m Memory) { m["leaf.key"] = []byte("x") }, leaf: leaf, want: "has no usable key: reading leaf.key"},
		"a certificate that is no PEM":              {change: func(m Memory) { m["leaf.crt"] = []byte("x") }, leaf: leaf, want: "cannot be read: reading leaf.crt"},
		"the key of another certificate":            {change: func(m Memory) { m["leaf.key"] = m["ca.key"] }, leaf: leaf, want: "has no usable key: leaf.crt does not belong"},
		"the certificate of another authority":      {change: func(m Memory) { m["leaf.crt"], m["leaf.key"] = m["ca2.crt"], m["ca2.key"] }, leaf: leaf, want: "is not signed by the authority ca"},
		"another common name":                       {leaf: with(func(l *Leaf) { l.CommonName = "x" }), want: `has the common name "system:admin" in place of "x"`},
		"other organizations":                       {leaf: with(func(l *Leaf) { l.Organizations = nil }), want: "has the organizations"},
		"other usages":                              {leaf: with(func(l *Leaf) { l.Usages = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), want: "has other usages"},
		"more hosts":                                {leaf: with(func(l *Leaf) { l.Hosts = []string{"localhost", "karmada.example.org", "10.0.0.1"} }), want: "lacks the name karmada.example.org, 10.0.0.1"},
		"the last third of the lifetime":            {later: 201 * 24 * time.Hour, leaf: leaf, want: "expires on 2030-10-28"},
		"the moment before the last third":          {later: 199 * 24 * time.Hour, leaf: leaf},
		"a lifetime that the Leaf has not any more": {leaf: with(func(l *Leaf) { l.Lifetime = time.Hour })},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now, files := testNow, Memory{}
			store := Store{Files: files, Now: func() time.Time { return now }}
			authority, err := store.EnsureAuthority("ca", "karmada")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.EnsureAuthority("ca2", "other"); err != nil {
				t.Fatal(err)
			}
			if _, err := authority.EnsureLeaf("leaf", leaf); err != nil {
				t.Fatal(err)
			}
			if test.change != nil {
				test.change(files)
			}
			now = now.Add(test.later)
			if got := authority.RenewalReason("leaf", test.leaf); got != test.want && (test.want == "" || !strings.HasPrefix(got, test.want)) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// If a certificate is lost, issuing it again must not invalidate the tokens and pins that depend on its
// key.
func TestLostCertificateKeepsKey(t *testing.T) {
	files := Memory{}
	store := Store{Files: files, Now: func() time.Time { return testNow }}
	authority, err := store.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := authority.EnsureLeaf("leaf", Leaf{CommonName: "leaf"}); err != nil {
		t.Fatal(err)
	}
	key := bytes.Clone(files["leaf.key"])
	delete(files, "leaf.crt")
	if issued, err := authority.EnsureLeaf("leaf", Leaf{CommonName: "leaf"}); err != nil || !issued {
		t.Fatalf("issued %v, error %v", issued, err)
	}
	if !bytes.Equal(key, files["leaf.key"]) {
		t.Error("the key has changed")
	}
}

func FuzzGivenAuthority(f *testing.F) {
	given := newGiven(f, nil)
	f.Add(given.Cert.PEM, given.Key.PEM)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, cert, key []byte) {
		err := GivenAuthority{Given{"cert", cert}, Given{"key", key}}.Check(testNow)
		var wrong *GivenError
		if err != nil && !errors.As(err, &wrong) {
			t.Errorf("the error %v has another type", err)
		}
	})
}
