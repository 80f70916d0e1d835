package certificates

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/keyutil"

	"karmada.io/karmada/internal/pki"
)

func TestEnsureIssuesWhatMustBeIssued(t *testing.T) {
	tests := map[string]struct {
		change func(Set)
		spec   func(*Spec)
		later  time.Duration
		want   []string
	}{
		"nothing if all are valid":                   {},
		"nothing if a third of the lifetime is left": {later: 240 * day},
		"all in the last third of the lifetime": {later: 250 * day, want: []string{
			"karmada expires on 2031-01-01", "apiserver expires on 2031-01-01", "front-proxy-client expires on 2031-01-01",
			"etcd-server expires on 2031-01-01", "etcd-client expires on 2031-01-01",
		}},
		"all that have expired": {later: 400 * day, want: []string{
			"karmada expires on 2031-01-01", "apiserver expires on 2031-01-01", "front-proxy-client expires on 2031-01-01",
			"etcd-server expires on 2031-01-01", "etcd-client expires on 2031-01-01",
		}},
		"a missing certificate":                             {change: func(s Set) { delete(s, "apiserver.crt") }, want: []string{"apiserver is missing"}},
		"a certificate without a key":                       {change: func(s Set) { delete(s, "apiserver.key") }, want: []string{"apiserver has no key"}},
		"a certificate that cannot be read":                 {change: func(s Set) { s["apiserver.crt"] = []byte("x") }, want: []string{"apiserver cannot be read: reading apiserver.crt: data does not contain any valid RSA or ECDSA certificates"}},
		"the lost certificate of the key that signs tokens": {change: func(s Set) { delete(s, "karmada.crt") }, want: []string{"karmada is missing"}},
		"servers that get a name":                           {spec: func(s *Spec) { s.ExternalHosts = append(s.ExternalHosts, "k.example.com") }, want: []string{"karmada lacks the name k.example.com", "apiserver lacks the name k.example.com"}},
		"nothing if servers lose a name":                    {spec: func(s *Spec) { s.ExternalHosts = nil }},
		"another namespace":                                 {spec: func(s *Spec) { s.ExternalHosts, s.Namespace = nil, "b" }, want: []string{"karmada lacks the name", "apiserver lacks the name", "etcd-server lacks the name"}},
		"more members of etcd":                              {spec: func(s *Spec) { s.EtcdReplicas = 3 }},
		"nothing for another lifetime":                      {spec: func(s *Spec) { s.LeafLifetime = 30 * day }},
		"a new authority if both of its files are gone": {
			change: func(s Set) { delete(s, "front-proxy-ca.crt"); delete(s, "front-proxy-ca.key") },
			want:   []string{"front-proxy-ca is missing", "front-proxy-client is not signed by the authority front-proxy-ca"},
		},
		"nothing if the key of an authority is elsewhere": {change: func(s Set) { delete(s, "ca.key"); delete(s, "etcd-ca.key") }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := testSpec()
			existing, _ := mustEnsure(t, nil, spec, testNow)
			if test.change != nil {
				test.change(existing)
			}
			if test.spec != nil {
				test.spec(&spec)
			}
			now := testNow.Add(test.later)
			set, changes := mustEnsure(t, existing, spec, now)
			if len(changes) != len(test.want) {
				t.Fatalf("changes %v, want %q", changes, test.want)
			}
			changed := map[string]bool{}
			for i, change := range changes {
				if !strings.HasPrefix(change.String(), test.want[i]) {
					t.Errorf("change %q, want %q", change, test.want[i])
				}
				changed[change.Name] = true
			}
			for file, content := range existing {
				certificate, _, _ := strings.Cut(file, ".")
				if !changed[certificate] && !bytes.Equal(content, set[file]) {
					t.Errorf("%s has changed without a reason", file)
				}
			}
			if !bytes.Equal(existing["karmada.key"], set["karmada.key"]) {
				t.Error("the key that signs tokens has changed")
			}
			checkUsable(t, set, now)
		})
	}
}

// checkUsable checks that no certificate of a set has a problem or is due.
func checkUsable(t interface {
	Helper()
	Errorf(string, ...any)
}, set Set, now time.Time) {
	t.Helper()
	for _, certificate := range Inspect(set, now) {
		if certificate.Problem != "" || !certificate.IsAuthority && certificate.IsDue(now) {
			t.Errorf("%s %s, to be renewed at %s", certificate.Name, certificate.Problem, certificate.RenewAt)
		}
	}
}

func TestEnsureRefusesToReplace(t *testing.T) {
	due := testNow.Add(300 * day)
	tests := map[string]struct {
		change func(Set)
		now    time.Time
		want   string
		typed  any
	}{
		"an authority whose key is missing while a certificate is due":  {change: func(s Set) { delete(s, "ca.key") }, now: due, want: "put its key ca.key back, or delete both", typed: new(*pki.MissingKeyError)},
		"an authority whose certificate is missing":                     {change: func(s Set) { delete(s, "ca.crt") }, now: testNow, want: "ca.key of a certificate authority exists, but its certificate ca.crt is missing"},
		"an authority whose certificate cannot be read":                 {change: func(s Set) { s["etcd-ca.crt"] = []byte("x") }, now: testNow, want: "put the right certificate etcd-ca.crt and key etcd-ca.key back"},
		"an authority whose key belongs to another one":                 {change: func(s Set) { s["ca.key"] = s["etcd-ca.key"] }, now: testNow, want: "ca.crt does not belong to the key in ca.key"},
		"an authority that has expired":                                 {now: testNow.Add(11 * 365 * day), want: `certificate karmada expires on 2031-01-01, but its certificate authority "ca" expired on 2039-12-30`, typed: new(*ExpiredAuthorityError)},
		"a key for tokens that is missing":                              {change: func(s Set) { delete(s, "karmada.key") }, now: testNow, want: "is missing: put it back, or delete karmada.key and karmada.crt", typed: new(*TokenKeyError)},
		"a key for tokens that cannot be read":                          {change: func(s Set) { s["karmada.key"] = []byte("x") }, now: testNow, want: "cannot be read", typed: new(*TokenKeyError)},
		"a key for tokens that cannot be read, without its certificate": {change: func(s Set) { s["karmada.key"] = nil; delete(s, "karmada.crt") }, now: testNow, want: "cannot be read", typed: new(*TokenKeyError)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			existing, _ := mustEnsure(t, nil, testSpec(), testNow)
			if test.change != nil {
				test.change(existing)
			}
			set, changes, err := Ensure(existing, testSpec(), test.now)
			if err == nil || !strings.Contains(err.Error(), test.want) || set != nil || changes != nil {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if test.typed != nil && !errors.As(err, test.typed) {
				t.Errorf("the error has the type %T", err)
			}
		})
	}
}

func TestTokenKeyOfEarlierReleaseStays(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	set, _ := mustEnsure(t, Set{"karmada.key": encoded}, testSpec(), testNow)
	if !bytes.Equal(set["karmada.key"], encoded) {
		t.Error("the RSA key has been replaced")
	}
	checkUsable(t, set, testNow)
}

func TestExternalEtcd(t *testing.T) {
	complete, _ := mustEnsure(t, nil, testSpec(), testNow)
	given := func(files ...string) Set {
		set := Set{}
		for _, file := range files {
			set[file] = complete[file]
		}
		return set
	}
	tests := map[string]struct {
		existing Set
		now      time.Time
		want     string
	}{
		"the given files suffice":         {existing: given("etcd-ca.crt", "etcd-client.crt", "etcd-client.key")},
		"expired files are kept":          {existing: given("etcd-ca.crt", "etcd-client.crt", "etcd-client.key"), now: testNow.Add(500 * day)},
		"the authority is missing":        {existing: given("etcd-client.crt", "etcd-client.key"), want: "etcd-ca.crt is missing"},
		"the key is missing":              {existing: given("etcd-ca.crt", "etcd-client.crt"), want: "etcd-client.key is missing"},
		"the key is of another one":       {existing: Set{"etcd-ca.crt": complete["etcd-ca.crt"], "etcd-client.crt": complete["etcd-client.crt"], "etcd-client.key": complete["ca.key"]}, want: "give a certificate and the key that belongs to it"},
		"the authority cannot be read":    {existing: Set{"etcd-ca.crt": nil, "etcd-client.crt": complete["etcd-client.crt"], "etcd-client.key": complete["etcd-client.key"]}, want: "reading etcd-ca.crt of the external etcd"},
		"without any file there is no CA": {want: "etcd-ca.crt is missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec, now := testSpec(), testNow
			spec.EtcdReplicas = 0
			if !test.now.IsZero() {
				now = test.now
			}
			set, _, err := Ensure(test.existing, spec, now)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if err != nil {
				return
			}
			for file, content := range test.existing {
				if !bytes.Equal(set[file], content) {
					t.Errorf("%s has changed", file)
				}
			}
			for _, file := range []string{"etcd-ca.key", "etcd-server.crt"} {
				if _, ok := set[file]; ok {
					t.Errorf("%s exists", file)
				}
			}
		})
	}
}

// newAuthority returns an authority of a user with an RSA key.
func newAuthority(t testing.TB, edit func(*x509.Certificate)) pki.GivenAuthority {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "Corporate CA"},
		NotBefore: testNow.Add(-time.Hour), NotAfter: testNow.Add(5 * 365 * day),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	if edit != nil {
		edit(template)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return pki.GivenAuthority{Cert: pki.Given{Source: "own.crt", PEM: pki.EncodeCerts(raw)}, Key: pki.Given{Source: "own.key", PEM: encoded}}
}

func TestGivenAuthority(t *testing.T) {
	own := newAuthority(t, nil)
	spec := testSpec()
	spec.GivenCA = own
	set, changes := mustEnsure(t, nil, spec, testNow)
	if len(changes) != 8 || !bytes.Equal(set["ca.crt"], own.Cert.PEM) || !bytes.Equal(set["ca.key"], own.Key.PEM) {
		t.Errorf("the authority was not imported: %v", changes)
	}
	checkUsable(t, set, testNow)
	if issuer := parse(t, set, Karmada).Issuer.CommonName; issuer != "Corporate CA" {
		t.Errorf("issuer %q", issuer)
	}
	again, changes := mustEnsure(t, set, spec, testNow)
	if diff := cmp.Diff(set, again); diff != "" || len(changes) > 0 {
		t.Errorf("a second run changes %v", changes)
	}
	if _, changes := mustEnsure(t, set, testSpec(), testNow); len(changes) > 0 {
		t.Errorf("a run without the authority of the user changes %v", changes)
	}
	delete(set, "ca.key")
	restored, changes := mustEnsure(t, set, spec, testNow)
	if diff := cmp.Diff([]Change{{CA, "has no key"}}, changes); diff != "" || !bytes.Equal(restored["ca.key"], own.Key.PEM) {
		t.Errorf("the missing key (-want +got):\n%s", diff)
	}
}

func TestGivenAuthorityThatCannotBeUsed(t *testing.T) {
	created, _ := mustEnsure(t, nil, testSpec(), testNow)
	tests := map[string]struct {
		existing Set
		given    pki.GivenAuthority
		want     string
	}{
		"another authority than the one in use":   {existing: created, given: newAuthority(t, nil), want: "own.crt: the installation has another certificate authority (ca.crt): omit it"},
		"an authority that has expired":           {given: newAuthority(t, func(c *x509.Certificate) { c.NotAfter = testNow.Add(-time.Minute) }), want: "own.crt: the certificate has expired on 2029-12-31"},
		"an authority for other names":            {given: newAuthority(t, func(c *x509.Certificate) { c.PermittedDNSDomains = []string{"example.org"} }), want: `"ca" does not permit the certificate "karmada"`},
		"a key without its certificate":           {given: pki.GivenAuthority{Cert: pki.Given{Source: "own.crt"}, Key: newAuthority(t, nil).Key}, want: "own.crt: it is empty"},
		"an existing key without its certificate": {existing: Set{"ca.key": created["ca.key"]}, given: newAuthority(t, nil), want: "its certificate ca.crt is missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := testSpec()
			spec.GivenCA = test.given
			_, _, err := Ensure(test.existing, spec, testNow)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestRenewOnRequest(t *testing.T) {
	external := testSpec()
	external.EtcdReplicas = 0
	tests := map[string]struct {
		spec  Spec
		names []string
		want  []Change
		error string
	}{
		"without names, nothing is due":     {spec: testSpec()},
		"a named certificate":               {spec: testSpec(), names: []string{"apiserver"}, want: []Change{{"apiserver", "was requested by name"}}},
		"several certificates":              {spec: testSpec(), names: []string{"etcd-client", "karmada"}, want: []Change{{"karmada", "was requested by name"}, {"etcd-client", "was requested by name"}}},
		"an authority is rotated":           {spec: testSpec(), names: []string{"ca"}, error: "rotate it step by step"},
		"an unknown name":                   {spec: testSpec(), names: []string{"apiservr"}, error: `there is no certificate "apiservr": use karmada, apiserver`},
		"a certificate of an external etcd": {spec: external, names: []string{"etcd-client"}, error: "belongs to an external etcd"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			existing, _ := mustEnsure(t, nil, testSpec(), testNow)
			set, changes, err := Renew(existing, test.spec, test.names, testNow.Add(day))
			if (err == nil) != (test.error == "") || err != nil && !strings.Contains(err.Error(), test.error) {
				t.Fatalf("got %v, want %q", err, test.error)
			}
			if diff := cmp.Diff(test.want, changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			for _, name := range test.names {
				if err == nil && (bytes.Equal(existing[name+".crt"], set[name+".crt"]) || !bytes.Equal(existing[name+".key"], set[name+".key"])) {
					t.Errorf("%s: want a new certificate with the same key", name)
				}
			}
		})
	}
}
