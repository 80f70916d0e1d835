package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"karmada.io/karmada/internal/pki"
)

// Ensure returns the set with all certificates that the installation needs, and the changes. It issues a
// certificate that is missing or unreadable, is signed by another authority, has another identity, lacks a
// host name, or is in the last third of its lifetime. It keeps all other files byte for byte, including
// unknown ones.
//
// Ensure creates an authority if neither its certificate nor its key exists. An administrator may store the
// key of an existing authority elsewhere: valid certificates then stay valid, and Ensure returns a
// *pki.MissingKeyError if it must issue one. If Ensure returns an error, it issues nothing.
func Ensure(existing Set, spec Spec, now time.Time) (Set, []Change, error) {
	i, err := newIssuer(existing, spec, now)
	if err != nil {
		return nil, nil, err
	}
	if err := i.ensureAll(); err != nil {
		return nil, nil, err
	}
	return i.set, i.changes, nil
}

// Renew does the same as Ensure, and also issues the named certificates if they are still valid.
func Renew(existing Set, spec Spec, names []string, now time.Time) (Set, []Change, error) {
	for _, name := range names {
		if err := spec.validateRenewable(name); err != nil {
			return nil, nil, err
		}
	}
	i, err := newIssuer(existing, spec, now)
	if err != nil {
		return nil, nil, err
	}
	i.requested = names
	if err := i.ensureAll(); err != nil {
		return nil, nil, err
	}
	return i.set, i.changes, nil
}

// validateRenewable returns an error if the installation does not issue the named certificate.
func (s Spec) validateRenewable(name string) error {
	at := slices.IndexFunc(leaves, func(row leafRow) bool { return row.name == name })
	switch {
	case slices.Contains(AuthorityNames(), name):
		return fmt.Errorf("%s is a certificate authority, and a new one would invalidate its certificates: rotate it step by step", name)
	case at < 0:
		return fmt.Errorf("there is no certificate %q: use %s", name, strings.Join(LeafNames(), ", "))
	case leaves[at].authority == EtcdCA && s.hasExternalEtcd():
		return fmt.Errorf("the certificate %q belongs to an external etcd: renew it with the tools of this etcd", name)
	}
	return nil
}

// issuer issues the certificates in one set.
type issuer struct {
	set   Set
	spec  Spec
	now   time.Time
	store pki.Store
	// requested are the names of the certificates to issue even if they are valid.
	requested []string
	changes   []Change
}

func newIssuer(existing Set, spec Spec, now time.Time) (*issuer, error) {
	spec, err := spec.complete()
	if err != nil {
		return nil, err
	}
	set := existing.clone()
	store := pki.Store{Files: pki.Memory(set), Now: func() time.Time { return now }, AuthorityLifetime: spec.AuthorityLifetime}
	return &issuer{set: set, spec: spec, now: now, store: store}, nil
}

func (i *issuer) ensureAll() error {
	for _, row := range i.spec.authorities() {
		authority, err := i.ensureAuthority(row)
		if err != nil {
			return err
		}
		if err := i.ensureLeaves(authority); err != nil {
			return err
		}
	}
	if i.spec.hasExternalEtcd() {
		return i.validateExternalEtcd()
	}
	return nil
}

func (i *issuer) addChange(name, reason string) {
	i.changes = append(i.changes, Change{Name: name, Reason: reason})
}

// ensureAuthority loads, imports or creates an authority.
func (i *issuer) ensureAuthority(row authorityRow) (*pki.Authority, error) {
	certFile, keyFile := row.name+pki.CertSuffix, row.name+pki.KeySuffix
	hasCert, hasKey := i.has(certFile), i.has(keyFile)
	if hasKey && !hasCert {
		return nil, fmt.Errorf("the key %s of a certificate authority exists, but its certificate %s is missing: put the certificate back, or delete the key to create a new authority, which invalidates all certificates of the old one", keyFile, certFile)
	}
	if row.name == CA && !i.spec.GivenCA.IsZero() {
		imported, err := i.store.ImportAuthority(row.name, i.spec.GivenCA)
		switch {
		case err != nil:
			return nil, fmt.Errorf("certificate authority %q: %w", row.name, err)
		case imported && hasCert:
			i.addChange(row.name, "has no key")
		case imported:
			i.addChange(row.name, "is missing")
		}
		return i.store.LoadAuthority(row.name)
	}
	if !hasCert {
		i.addChange(row.name, "is missing")
		return i.store.EnsureAuthority(row.name, row.commonName)
	}
	authority, err := i.store.LoadAuthority(row.name)
	if err != nil {
		return nil, fmt.Errorf("%w: put the right certificate %s and key %s back, or delete both to create a new authority, which invalidates all certificates of the old one", err, certFile, keyFile)
	}
	return authority, nil
}

func (i *issuer) has(file string) bool {
	_, ok := i.set[file]
	return ok
}

// ensureLeaves issues the authority's certificates that are missing, invalid or due for renewal.
func (i *issuer) ensureLeaves(authority *pki.Authority) error {
	for _, row := range leavesOf(authority.Name) {
		if row.name == Karmada {
			if err := i.validateTokenKey(); err != nil {
				return err
			}
		}
		leaf := i.spec.leaf(row)
		reason := authority.RenewalReason(row.name, leaf)
		if reason == "" && slices.Contains(i.requested, row.name) {
			reason = "was requested by name"
		}
		if reason == "" {
			continue
		}
		if !i.now.Before(authority.Cert.NotAfter) {
			return &ExpiredAuthorityError{Authority: authority.Name, Expired: authority.Cert.NotAfter,
				Needed: Change{Name: row.name, Reason: reason}}
		}
		if err := authority.IssueLeaf(row.name, leaf); err != nil {
			return fmt.Errorf("certificate %s %s: %w", row.name, reason, err)
		}
		if err := i.verifyIssued(row, authority.Cert); err != nil {
			return err
		}
		i.addChange(row.name, reason)
	}
	return nil
}

// verifyIssued returns an error if clients would reject an issued certificate, because the user's authority
// has constraints.
func (i *issuer) verifyIssued(row leafRow, authority *x509.Certificate) error {
	certs, err := certutil.ParseCertsPEM(i.set[row.name+pki.CertSuffix])
	if err != nil {
		return fmt.Errorf("reading the issued certificate %s: %w", row.name, err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	options := x509.VerifyOptions{Roots: roots, CurrentTime: i.now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	if _, err := certs[0].Verify(options); err != nil {
		return fmt.Errorf("the certificate authority %q does not permit the certificate %q: %w: use an authority without such constraints",
			row.authority, row.name, err)
	}
	return nil
}

// ExpiredAuthorityError means that a certificate must be issued, but its authority has expired.
type ExpiredAuthorityError struct {
	Authority string
	Expired   time.Time
	// Needed describes the certificate that must be issued.
	Needed Change
}

func (e *ExpiredAuthorityError) Error() string {
	return fmt.Sprintf("certificate %s, but its certificate authority %q expired on %s: replace the authority with the steps of a rotation",
		e.Needed, e.Authority, formatDate(e.Expired))
}

// TokenKeyError means that the key that signs service account tokens is lost.
type TokenKeyError struct{ Reason string }

func (e *TokenKeyError) Error() string {
	file := Karmada + pki.KeySuffix
	return fmt.Sprintf("the key %s, which signs the tokens of service accounts, %s: put it back, or delete %s and %s to create a new key, which invalidates all tokens", file, e.Reason, file, Karmada+pki.CertSuffix)
}

// validateTokenKey returns an error if issuing certificates would replace the key that signs service account
// tokens.
func (i *issuer) validateTokenKey() error {
	key, ok := i.set[Karmada+pki.KeySuffix]
	if !ok {
		if i.has(Karmada + pki.CertSuffix) {
			return &TokenKeyError{Reason: "is missing"}
		}
		return nil
	}
	if _, err := keyutil.ParsePrivateKeyPEM(key); err != nil {
		return &TokenKeyError{Reason: "cannot be read (" + err.Error() + ")"}
	}
	return nil
}

// validateExternalEtcd validates the client files for an external etcd. It accepts expired certificates,
// because only the administrator of that etcd can replace them; Inspect reports them.
func (i *issuer) validateExternalEtcd() error {
	for _, file := range []string{EtcdCA + pki.CertSuffix, EtcdClient + pki.CertSuffix, EtcdClient + pki.KeySuffix} {
		if !i.has(file) {
			return fmt.Errorf("%s is missing: give the certificate authority, the client certificate and its key of the external etcd", file)
		}
	}
	if _, err := certutil.ParseCertsPEM(i.set[EtcdCA+pki.CertSuffix]); err != nil {
		return fmt.Errorf("reading %s of the external etcd: %w: give a certificate in PEM", EtcdCA+pki.CertSuffix, err)
	}
	if _, err := tls.X509KeyPair(i.set[EtcdClient+pki.CertSuffix], i.set[EtcdClient+pki.KeySuffix]); err != nil {
		return fmt.Errorf("reading %s and %s of the external etcd: %w: give a certificate and the key that belongs to it",
			EtcdClient+pki.CertSuffix, EtcdClient+pki.KeySuffix, err)
	}
	return nil
}

func formatDate(at time.Time) string { return at.UTC().Format(time.DateOnly) }
