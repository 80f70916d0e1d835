package pki

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Reasons for a GivenError.
var (
	ErrEmpty          = errors.New("it is empty")
	ErrNoCertificate  = errors.New("it contains no valid certificate in PEM")
	ErrNoKey          = errors.New("it contains no valid private key in PEM")
	ErrEncryptedKey   = errors.New("the private key is encrypted")
	ErrNotAnAuthority = errors.New("the certificate is not a certificate authority (basic constraint CA)")
	ErrCannotSign     = errors.New("the key usage of the certificate does not contain the signing of certificates (keyCertSign)")
	ErrLimitedUsages  = errors.New("the extended key usage of the certificate excludes servers or clients")
	ErrExpired        = errors.New("the certificate has expired")
	ErrNotYetValid    = errors.New("the certificate is not valid yet")
	ErrKeyMismatch    = errors.New("the private key does not belong to the certificate")
	ErrOtherAuthority = errors.New("the installation has another certificate authority")
)

// GivenError means that an authority that a user provided cannot be used.
type GivenError struct {
	// Source is the file or field that contains the mistake.
	Source string
	// Reason is one of the errors of this package, or wraps one of them.
	Reason error
	// Remedy tells the user what to do.
	Remedy string
}

func (e *GivenError) Error() string { return fmt.Sprintf("%s: %v: %s", e.Source, e.Reason, e.Remedy) }

func (e *GivenError) Unwrap() error { return e.Reason }

// Given is a file or field in PEM that a user provided.
type Given struct {
	// Source is the file's path or the field's name, for messages.
	Source string
	PEM    []byte
}

// GivenAuthority is a certificate authority that a user provided. The certificate's file may contain a
// chain, whose first certificate is the authority.
type GivenAuthority struct{ Cert, Key Given }

// IsZero reports whether the user provided no authority.
func (g GivenAuthority) IsZero() bool { return len(g.Cert.PEM) == 0 && len(g.Key.PEM) == 0 }

// Check returns a *GivenError unless the authority can sign certificates at the time now.
func (g GivenAuthority) Check(now time.Time) error {
	_, _, err := g.parse(now)
	return err
}

// parse returns the authority's chain and encoded key, or an error if the authority is invalid.
func (g GivenAuthority) parse(now time.Time) ([]*x509.Certificate, []byte, error) {
	certs, err := g.parseCerts()
	if err != nil {
		return nil, nil, err
	}
	key, encoded, err := g.parseKey()
	if err != nil {
		return nil, nil, err
	}
	if !isKeyOf(key, certs[0]) {
		return nil, nil, g.mismatchError(key, certs)
	}
	if err := g.validateAuthority(certs[0], now); err != nil {
		return nil, nil, err
	}
	return certs, encoded, nil
}

// mismatchError returns the error for a key that does not belong to the first certificate.
func (g GivenAuthority) mismatchError(key crypto.Signer, certs []*x509.Certificate) error {
	remedy := fmt.Sprintf("give the key of the certificate %q, which is the first one of %s", certs[0].Subject, g.Cert.Source)
	if i := slices.IndexFunc(certs, func(cert *x509.Certificate) bool { return isKeyOf(key, cert) }); i > 0 {
		remedy = fmt.Sprintf("the key belongs to certificate %d of %s: move this certificate to the beginning of the file", i+1, g.Cert.Source)
	}
	return &GivenError{Source: g.Key.Source, Reason: ErrKeyMismatch, Remedy: remedy}
}

func (g GivenAuthority) parseCerts() ([]*x509.Certificate, error) {
	if len(g.Cert.PEM) == 0 {
		return nil, &GivenError{Source: g.Cert.Source, Reason: ErrEmpty, Remedy: "give the certificate together with the key"}
	}
	certs, err := certutil.ParseCertsPEM(g.Cert.PEM)
	if err != nil {
		return nil, &GivenError{Source: g.Cert.Source, Reason: fmt.Errorf("%w (%w)", ErrNoCertificate, err),
			Remedy: "give a file with a block BEGIN CERTIFICATE"}
	}
	return certs, nil
}

// parseKey returns the first private key in the file, and the key's encoding.
func (g GivenAuthority) parseKey() (crypto.Signer, []byte, error) {
	fail := func(reason error, remedy string) (crypto.Signer, []byte, error) {
		return nil, nil, &GivenError{Source: g.Key.Source, Reason: reason, Remedy: remedy}
	}
	if len(g.Key.PEM) == 0 {
		return fail(ErrEmpty, "give the key together with the certificate, because it signs the other certificates")
	}
	for block, rest := pem.Decode(g.Key.PEM); block != nil; block, rest = pem.Decode(rest) {
		encoded := pem.EncodeToMemory(block)
		private, err := keyutil.ParsePrivateKeyPEM(encoded)
		if signer, ok := private.(crypto.Signer); err == nil && ok {
			return signer, encoded, nil
		}
	}
	if isEncrypted(g.Key.PEM) {
		return fail(ErrEncryptedKey, "decrypt it, for example with openssl pkey")
	}
	return fail(ErrNoKey, "give an RSA or ECDSA key with a block BEGIN PRIVATE KEY, BEGIN EC PRIVATE KEY or BEGIN RSA PRIVATE KEY")
}

// isEncrypted reports whether the file contains an encrypted private key.
func isEncrypted(data []byte) bool {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
			return true
		}
	}
	return false
}

// validateAuthority returns an error unless the certificate may sign certificates for servers and
// clients.
func (g GivenAuthority) validateAuthority(cert *x509.Certificate, now time.Time) error {
	fail := func(reason error, remedy string) error {
		return &GivenError{Source: g.Cert.Source, Reason: reason, Remedy: remedy}
	}
	switch {
	case !cert.BasicConstraintsValid || !cert.IsCA:
		return fail(ErrNotAnAuthority, "give the certificate of an authority as the first one of the file")
	case cert.KeyUsage != 0 && cert.KeyUsage&x509.KeyUsageCertSign == 0:
		return fail(ErrCannotSign, "give a certificate authority that was issued with keyCertSign")
	case !permits(cert, x509.ExtKeyUsageServerAuth) || !permits(cert, x509.ExtKeyUsageClientAuth):
		return fail(ErrLimitedUsages, "give a certificate authority without an extended key usage, or with serverAuth and clientAuth")
	case now.After(cert.NotAfter):
		return fail(fmt.Errorf("%w on %s", ErrExpired, cert.NotAfter.UTC().Format(time.DateOnly)), "give a certificate authority that is valid")
	case now.Before(cert.NotBefore):
		return fail(fmt.Errorf("%w, but from %s on", ErrNotYetValid, cert.NotBefore.UTC().Format(time.RFC3339)),
			"check the clock of this machine, or give a certificate authority that is valid")
	}
	return nil
}

// permits reports whether the authority may sign certificates with the given usage.
func permits(cert *x509.Certificate, usage x509.ExtKeyUsage) bool {
	if len(cert.ExtKeyUsage) == 0 && len(cert.UnknownExtKeyUsage) == 0 {
		return true
	}
	return slices.Contains(cert.ExtKeyUsage, usage) || slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny)
}

// ImportAuthority stores a user's authority under the given name, with its chain. If the store has the
// same authority, only a missing key is added. If the store has another authority, the error is a
// *GivenError with the reason ErrOtherAuthority, because a new authority would invalidate all
// certificates that the existing one has signed.
func (s Store) ImportAuthority(name string, given GivenAuthority) (imported bool, err error) {
	certs, key, err := given.parse(s.now())
	if err != nil {
		return false, err
	}
	data, err := s.ReadFile(name + CertSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		raw := make([][]byte, len(certs))
		for i, cert := range certs {
			raw[i] = cert.Raw
		}
		if err := s.WriteFile(name+KeySuffix, key); err != nil {
			return false, err
		}
		return true, s.WriteFile(name+CertSuffix, EncodeCerts(raw...))
	case err != nil:
		return false, fmt.Errorf("reading certificate authority %q: %w", name, err)
	}
	existing, err := certutil.ParseCertsPEM(data)
	if err != nil {
		return false, fmt.Errorf("reading %s: %w: put the right certificate back", s.Location(name+CertSuffix), err)
	}
	if !slices.ContainsFunc(existing, certs[0].Equal) {
		return false, &GivenError{
			Source: given.Cert.Source, Reason: fmt.Errorf("%w (%s)", ErrOtherAuthority, s.Location(name+CertSuffix)),
			Remedy: "omit it to keep the authority of the installation, or replace this authority step by step",
		}
	}
	if s.exists(name+KeySuffix) || !existing[0].Equal(certs[0]) {
		return false, nil
	}
	return true, s.WriteFile(name+KeySuffix, key)
}
