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
	"time"
)

// DefaultAuthorityLifetime is the default validity of a certificate authority.
const DefaultAuthorityLifetime = 10 * 365 * 24 * time.Hour

// Authority is a certificate authority in a Store.
type Authority struct {
	store Store
	Name  string
	// Cert is the first certificate in the authority's file.
	Cert *x509.Certificate
	// key is nil if the authority's key is not stored.
	key crypto.Signer
}

// PEM returns the authority's certificate in PEM.
func (a *Authority) PEM() []byte { return EncodeCerts(a.Cert.Raw) }

// MissingKeyError means that an authority cannot sign certificates, because its key is not stored.
type MissingKeyError struct {
	// Authority is the authority's name. CertFile and KeyFile are the locations of its files.
	Authority, CertFile, KeyFile string
}

func (e *MissingKeyError) Error() string {
	return fmt.Sprintf("certificate authority %q has a certificate in %s, but no key: put its key %s back, or delete both to create a new authority", e.Authority, e.CertFile, e.KeyFile)
}

// LoadAuthority loads the authority with the given name. Its key may be missing. The authority can then
// verify leaf certificates, but cannot issue any. If the certificate does not exist, the error is
// fs.ErrNotExist.
func (s Store) LoadAuthority(name string) (*Authority, error) {
	stored, err := s.load(name)
	if err == nil && !errors.Is(stored.keyErr, fs.ErrNotExist) {
		err = stored.keyErr
	}
	if err != nil {
		return nil, fmt.Errorf("loading certificate authority %q: %w", name, err)
	}
	return &Authority{store: s, Name: name, Cert: stored.cert, key: stored.key}, nil
}

// EnsureAuthority loads the authority with the given name. If it does not exist, EnsureAuthority
// creates it with the given common name. If the authority's key is missing, the error is a
// *MissingKeyError.
func (s Store) EnsureAuthority(name, commonName string) (*Authority, error) {
	loaded, err := s.LoadAuthority(name)
	switch {
	case err == nil && loaded.key == nil:
		return nil, &MissingKeyError{Authority: name, CertFile: s.Location(name + CertSuffix), KeyFile: s.Location(name + KeySuffix)}
	case err == nil:
		return loaded, nil
	case s.exists(name + CertSuffix):
		// A new authority would invalidate all certificates that the existing authority has signed.
		return nil, fmt.Errorf("%w: put the right certificate %s and key %s back, or delete both to create a new authority", err,
			s.Location(name+CertSuffix), s.Location(name+KeySuffix))
	}
	raw, signer, err := s.newAuthority(commonName)
	if err != nil {
		return nil, fmt.Errorf("creating certificate authority %q: %w", name, err)
	}
	if err := s.store(name, raw, signer); err != nil {
		return nil, err
	}
	return s.LoadAuthority(name)
}

// newAuthority returns a new authority's certificate and key.
func (s Store) newAuthority(commonName string) ([]byte, crypto.Signer, error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating its key: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, nil, err
	}
	now, lifetime := s.now(), s.AuthorityLifetime
	if lifetime == 0 {
		lifetime = DefaultAuthorityLifetime
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-maxBackdate),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("signing its certificate: %w", err)
	}
	return raw, signer, nil
}
