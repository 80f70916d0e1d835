// Package pki answers "with which certificates do the parts of an installation trust each other?":
// certificate authorities, leaf certificates, service account keys and kubeconfigs, stored as PEM
// files in one directory.
//
// Keys never leave the directory, and only their owner can read them. Ensure* functions are
// idempotent, and do not change a valid leaf certificate. A leaf certificate is issued again if it
// is missing, signed by another authority, or in the last third of its lifetime. The new
// certificate has the key of the previous one, so that a caller that reads the certificate and then
// the key always gets a matching pair.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	// DefaultLeafLifetime is the validity of an issued certificate.
	DefaultLeafLifetime = 365 * 24 * time.Hour
	// maxBackdate is the tolerance for clocks that are slow: a certificate is already valid this
	// long before it is issued.
	maxBackdate = 5 * time.Minute
	// backdateDivisor limits the backdating of certificates with a short lifetime to a twentieth of
	// this lifetime.
	backdateDivisor = 20
)

// Dir is a directory of certificates and keys.
type Dir struct {
	Path string
	// Now is the clock. nil means the system clock.
	Now func() time.Time
}

// CertFile returns the path of the certificate with this name.
func (d Dir) CertFile(name string) string { return filepath.Join(d.Path, name+".crt") }

// KeyFile returns the path of the private key with this name.
func (d Dir) KeyFile(name string) string { return filepath.Join(d.Path, name+".key") }

func (d Dir) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}

// Authority is a certificate authority that is stored in a Dir.
type Authority struct {
	dir  Dir
	Name string
	Cert *x509.Certificate
	key  crypto.Signer
}

// PEM returns the certificate of the authority in PEM.
func (a *Authority) PEM() []byte { return encodeCert(a.Cert.Raw) }

// EnsureAuthority loads the authority with this name. If it does not exist, EnsureAuthority
// creates it with the common name.
func (d Dir) EnsureAuthority(name, commonName string) (*Authority, error) {
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return nil, fmt.Errorf("creating certificate directory: %w", err)
	}
	cert, key, err := d.load(name)
	if err == nil {
		return &Authority{dir: d, Name: name, Cert: cert, key: key}, nil
	}
	if _, exists := os.Stat(d.CertFile(name)); !os.IsNotExist(exists) {
		// A new authority would invalidate all certificates that the existing authority has signed.
		return nil, fmt.Errorf("loading certificate authority %q: its certificate %s exists: put its key %s back, or delete both to create a new authority: %w", name, d.CertFile(name), d.KeyFile(name), err)
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating key of certificate authority %q: %w", name, err)
	}
	now := d.now()
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-maxBackdate),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("signing certificate authority %q: %w", name, err)
	}
	if err := d.store(name, raw, signer); err != nil {
		return nil, err
	}
	cert, err = x509.ParseCertificate(raw)
	if err != nil {
		return nil, fmt.Errorf("parsing certificate authority %q: %w", name, err)
	}
	return &Authority{dir: d, Name: name, Cert: cert, key: signer}, nil
}

// Leaf describes a leaf certificate to issue.
type Leaf struct {
	// CommonName and Organizations are the user and the groups of a client.
	CommonName    string
	Organizations []string
	// Hosts are the DNS names and IP addresses of a serving certificate.
	Hosts []string
	// Usages limit what the certificate proves. Empty means the identity of servers and of clients.
	Usages []x509.ExtKeyUsage
	// Lifetime is the validity of the certificate. 0 means DefaultLeafLifetime.
	Lifetime time.Duration
}

// usages returns the usages of the certificate.
func (l Leaf) usages() []x509.ExtKeyUsage {
	if len(l.Usages) == 0 {
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	return l.Usages
}

// EnsureLeaf ensures that the certificate with this name exists, is signed by this authority, has
// the given identity and hosts, and has at least a third of its lifetime left. It reports
// whether it issued the certificate.
func (a *Authority) EnsureLeaf(name string, leaf Leaf) (issued bool, err error) {
	cert, signer, err := a.dir.load(name)
	if err == nil && a.isValidFor(cert, leaf) {
		return false, nil
	}
	if err != nil {
		if signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return false, fmt.Errorf("generating key %q: %w", name, err)
		}
	}
	raw, err := a.sign(signer.Public(), leaf)
	if err != nil {
		return false, fmt.Errorf("issuing certificate %q: %w", name, err)
	}
	return true, a.dir.store(name, raw, signer)
}

// isValidFor reports whether an existing certificate still matches the requirements of leaf.
func (a *Authority) isValidFor(cert *x509.Certificate, leaf Leaf) bool {
	if cert.CheckSignatureFrom(a.Cert) != nil || cert.Subject.CommonName != leaf.CommonName ||
		!slices.Equal(cert.Subject.Organization, leaf.Organizations) || !slices.Equal(cert.ExtKeyUsage, leaf.usages()) {
		return false
	}
	for _, host := range leaf.Hosts {
		if cert.VerifyHostname(host) != nil {
			return false
		}
	}
	return a.dir.now().Before(renewalTime(cert))
}

// renewalTime returns the time at which the last third of the lifetime of a certificate begins.
func renewalTime(cert *x509.Certificate) time.Time {
	return cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore) / 3)
}

// RenewalTime returns the time at which the certificate with this name must be issued again.
func (d Dir) RenewalTime(name string) (time.Time, error) {
	cert, _, err := d.load(name)
	if err != nil {
		return time.Time{}, fmt.Errorf("loading certificate %q: %w", name, err)
	}
	return renewalTime(cert), nil
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
	now := a.dir.now()
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

// EnsureKey ensures that a private key with this name exists. The key signs service account
// tokens.
func (d Dir) EnsureKey(name string) error {
	if _, err := os.Stat(d.KeyFile(name)); err == nil {
		return nil
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating key %q: %w", name, err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(signer)
	if err != nil {
		return fmt.Errorf("encoding key %q: %w", name, err)
	}
	return WriteFile(d.KeyFile(name), encoded, 0o600)
}

func (d Dir) load(name string) (*x509.Certificate, crypto.Signer, error) {
	if _, err := os.Stat(d.CertFile(name)); err != nil {
		return nil, nil, err
	}
	certs, err := certutil.CertsFromFile(d.CertFile(name))
	if err != nil {
		return nil, nil, err
	}
	private, err := keyutil.PrivateKeyFromFile(d.KeyFile(name))
	if err != nil {
		return nil, nil, err
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("%s holds no signing key", d.KeyFile(name))
	}
	if public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(certs[0].PublicKey) {
		return nil, nil, fmt.Errorf("%s does not belong to the key in %s", d.CertFile(name), d.KeyFile(name))
	}
	return certs[0], signer, nil
}

func (d Dir) store(name string, raw []byte, signer crypto.Signer) error {
	key, err := keyutil.MarshalPrivateKeyToPEM(signer)
	if err != nil {
		return fmt.Errorf("encoding key %q: %w", name, err)
	}
	if err := WriteFile(d.KeyFile(name), key, 0o600); err != nil {
		return err
	}
	return WriteFile(d.CertFile(name), encodeCert(raw), 0o644)
}

// WriteFile replaces a file atomically. After a crash, even of the machine, the file has the
// complete old or the complete new content.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	next := path + ".new"
	if err := writeSynced(next, data, mode); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// writeSynced writes a file and flushes it to the disk.
func writeSynced(path string, data []byte, mode os.FileMode) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func encodeCert(raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: raw})
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(math.MaxInt64-1))
	if err != nil {
		return nil, fmt.Errorf("generating a serial number: %w", err)
	}
	return serial.Add(serial, big.NewInt(1)), nil
}
