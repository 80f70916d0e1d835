// Package pki creates the certificates with which an installation's parts authenticate each other:
// certificate authorities, leaf certificates, ServiceAccount keys and kubeconfigs, stored as PEM files
// in a directory or in memory.
//
// Keys never leave their storage, and in a directory only their owner can read them. Functions whose
// names begin with Ensure are idempotent, and do not change a valid leaf certificate. A leaf
// certificate is issued again if it is missing, signed by another authority, or in the last third of
// its lifetime. The new certificate has the previous certificate's key, so that a caller that reads the
// certificate and then the key always gets a matching pair.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Store issues certificates and stores them in Files.
type Store struct {
	Files
	// Now returns the current time. Nil selects the system clock.
	Now func() time.Time
	// AuthorityLifetime is the validity of authorities that EnsureAuthority creates. 0 selects
	// DefaultAuthorityLifetime.
	AuthorityLifetime time.Duration
}

func (s Store) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// RenewalTime returns the time at which the certificate with the given name must be issued again.
func (s Store) RenewalTime(name string) (time.Time, error) {
	pair, err := s.load(name)
	if err == nil {
		err = pair.keyErr
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("loading certificate %q: %w", name, err)
	}
	return RenewalTime(pair.cert), nil
}

// RenewalTime returns the time at which the last third of the certificate's lifetime begins.
func RenewalTime(cert *x509.Certificate) time.Time {
	return cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore) / 3)
}

// EnsureKey ensures that a private key with the given name exists. The key signs ServiceAccount tokens.
func (s Store) EnsureKey(name string) error {
	if _, err := s.ReadFile(name + KeySuffix); err == nil {
		return nil
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating key %q: %w", name, err)
	}
	return s.storeKey(name, signer)
}

// pair is a stored certificate and its key.
type pair struct {
	// cert is the first certificate in the file.
	cert *x509.Certificate
	// key is nil if there is no usable key. keyErr is then the reason.
	key    crypto.Signer
	keyErr error
}

// load reads a certificate and its key. The returned error concerns only the certificate.
func (s Store) load(name string) (pair, error) {
	data, err := s.ReadFile(name + CertSuffix)
	if err != nil {
		return pair{}, err
	}
	certs, err := certutil.ParseCertsPEM(data)
	if err != nil {
		return pair{}, fmt.Errorf("reading %s: %w", s.Location(name+CertSuffix), err)
	}
	loaded := pair{cert: certs[0]}
	key, err := s.loadKey(name)
	switch {
	case err != nil:
		loaded.keyErr = err
	case isKeyOf(key, certs[0]):
		loaded.key = key
	case slices.ContainsFunc(certs[1:], func(cert *x509.Certificate) bool { return isKeyOf(key, cert) }):
		loaded.keyErr = fmt.Errorf("the key of the first certificate of %s is not in %s: %w", s.Location(name+CertSuffix),
			s.Location(name+KeySuffix), fs.ErrNotExist)
	default:
		loaded.keyErr = fmt.Errorf("%s does not belong to the key in %s", s.Location(name+CertSuffix), s.Location(name+KeySuffix))
	}
	return loaded, nil
}

// loadKey reads a private key.
func (s Store) loadKey(name string) (crypto.Signer, error) {
	data, err := s.ReadFile(name + KeySuffix)
	if err != nil {
		return nil, err
	}
	private, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.Location(name+KeySuffix), err)
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s holds no signing key", s.Location(name+KeySuffix))
	}
	return signer, nil
}

// isKeyOf reports whether the private key belongs to the certificate.
func isKeyOf(key crypto.Signer, cert *x509.Certificate) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(cert.PublicKey)
}

func (s Store) store(name string, raw []byte, signer crypto.Signer) error {
	if err := s.storeKey(name, signer); err != nil {
		return err
	}
	return s.WriteFile(name+CertSuffix, EncodeCerts(raw))
}

// storeKey writes a private key unless the same key is already stored. A stored key keeps its encoding.
func (s Store) storeKey(name string, signer crypto.Signer) error {
	if stored, err := s.loadKey(name); err == nil && isSameKey(stored, signer) {
		return nil
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(signer)
	if err != nil {
		return fmt.Errorf("encoding key %q: %w", name, err)
	}
	return s.WriteFile(name+KeySuffix, encoded)
}

func isSameKey(a, b crypto.Signer) bool {
	public, ok := a.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(b.Public())
}

// exists reports whether a file exists. A file that cannot be read counts as existing.
func (s Store) exists(file string) bool {
	_, err := s.ReadFile(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// EncodeCerts encodes DER certificates in PEM, one after the other.
func EncodeCerts(raw ...[]byte) []byte {
	var encoded []byte
	for _, each := range raw {
		encoded = append(encoded, pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: each})...)
	}
	return encoded
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(math.MaxInt64-1))
	if err != nil {
		return nil, fmt.Errorf("generating a serial number: %w", err)
	}
	return serial.Add(serial, big.NewInt(1)), nil
}
