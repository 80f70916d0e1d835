package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"time"
)

const (
	// DefaultLeafLifetime is the default validity of an issued certificate.
	DefaultLeafLifetime = 365 * 24 * time.Hour
	// maxBackdate is the maximum time by which a certificate is backdated, so that it is valid for
	// clients whose clocks are slow.
	maxBackdate = 5 * time.Minute
	// backdateDivisor limits the backdating of certificates with a short lifetime to one twentieth of
	// that lifetime.
	backdateDivisor = 20
)

// Leaf describes a leaf certificate to issue.
type Leaf struct {
	// CommonName and Organizations are a client's user name and groups.
	CommonName    string
	Organizations []string
	// Hosts are a serving certificate's DNS names and IP addresses.
	Hosts []string
	// Usages limit what the certificate proves. Empty means the identity of both servers and clients.
	Usages []x509.ExtKeyUsage
	// Lifetime is the certificate's validity. 0 selects DefaultLeafLifetime.
	Lifetime time.Duration
}

// usages returns Usages, or the default if it is empty.
func (l Leaf) usages() []x509.ExtKeyUsage {
	if len(l.Usages) == 0 {
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	return l.Usages
}

// EnsureLeaf ensures that the certificate with the given name exists, is signed by this authority, has
// the given identity and hosts, and has at least a third of its lifetime left. It reports whether it
// issued the certificate.
func (a *Authority) EnsureLeaf(name string, leaf Leaf) (issued bool, err error) {
	if a.RenewalReason(name, leaf) == "" {
		return false, nil
	}
	return true, a.IssueLeaf(name, leaf)
}

// IssueLeaf issues the certificate with the given name, even if the stored one is valid. The
// certificate has the key that is stored under its name, or a new key if no usable key is stored. The
// error is a *MissingKeyError if the authority's key is not stored.
func (a *Authority) IssueLeaf(name string, leaf Leaf) error {
	if a.key == nil {
		return fmt.Errorf("issuing certificate %q: %w", name,
			&MissingKeyError{Authority: a.Name, CertFile: a.store.Location(a.Name + CertSuffix), KeyFile: a.store.Location(a.Name + KeySuffix)})
	}
	signer, err := a.store.loadKey(name)
	if err != nil {
		if signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return fmt.Errorf("generating key %q: %w", name, err)
		}
	}
	raw, err := a.sign(signer.Public(), leaf)
	if err != nil {
		return fmt.Errorf("issuing certificate %q: %w", name, err)
	}
	return a.store.store(name, raw, signer)
}

// RenewalReason returns why the certificate with the given name must be issued, as a predicate such as
// "is missing". It returns an empty string if the stored certificate meets all requirements.
func (a *Authority) RenewalReason(name string, leaf Leaf) string {
	stored, err := a.store.load(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is missing"
	case err != nil:
		return "cannot be read: " + err.Error()
	case errors.Is(stored.keyErr, fs.ErrNotExist):
		return "has no key"
	case stored.keyErr != nil:
		return "has no usable key: " + stored.keyErr.Error()
	}
	return a.mismatch(stored.cert, leaf)
}

// mismatch describes how an existing certificate differs from the requirements.
func (a *Authority) mismatch(cert *x509.Certificate, leaf Leaf) string {
	switch {
	case cert.CheckSignatureFrom(a.Cert) != nil:
		return fmt.Sprintf("is not signed by the authority %s", a.Name)
	case cert.Subject.CommonName != leaf.CommonName:
		return fmt.Sprintf("has the common name %q in place of %q", cert.Subject.CommonName, leaf.CommonName)
	case !slices.Equal(withoutEmpty(cert.Subject.Organization), withoutEmpty(leaf.Organizations)):
		return fmt.Sprintf("has the organizations %q in place of %q", cert.Subject.Organization, leaf.Organizations)
	case !slices.Equal(slices.Sorted(slices.Values(cert.ExtKeyUsage)), slices.Sorted(slices.Values(leaf.usages()))):
		return "has other usages"
	}
	var lacking []string
	for _, host := range leaf.Hosts {
		if cert.VerifyHostname(host) != nil {
			lacking = append(lacking, host)
		}
	}
	if len(lacking) > 0 {
		return "lacks the name " + strings.Join(lacking, ", ")
	}
	if !a.store.now().Before(RenewalTime(cert)) {
		return "expires on " + cert.NotAfter.UTC().Format(time.DateOnly)
	}
	return ""
}

// withoutEmpty removes empty organizations, which some tools write into certificates that should have
// no organization.
func withoutEmpty(organizations []string) []string {
	return slices.DeleteFunc(slices.Clone(organizations), func(organization string) bool { return organization == "" })
}

func (a *Authority) sign(public crypto.PublicKey, leaf Leaf) ([]byte, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	lifetime := leaf.Lifetime
	if lifetime == 0 {
		lifetime = DefaultLeafLifetime
	}
	now := a.store.now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: leaf.CommonName, Organization: leaf.Organizations},
		NotBefore:    now.Add(-min(maxBackdate, lifetime/backdateDivisor)),
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  leaf.usages(),
	}
	for _, host := range leaf.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	return x509.CreateCertificate(rand.Reader, template, a.Cert, public, a.key)
}
