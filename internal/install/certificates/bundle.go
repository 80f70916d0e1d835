package certificates

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"karmada.io/karmada/internal/pki"
)

// bundle contains the certificates and keys of one authority. The first certificate is the signing CA.
type bundle struct {
	name  string
	certs []*x509.Certificate
	keys  []bundleKey
}

// bundleKey is a private key with its PEM encoding.
type bundleKey struct {
	signer  crypto.Signer
	encoded []byte
}

// parseBundle parses an authority's files. The key file may be missing.
func parseBundle(set Set, name string) (bundle, error) {
	file := name + pki.CertSuffix
	data, ok := set[file]
	if !ok {
		return bundle{}, fmt.Errorf("%s is missing: create the certificates of the installation first", file)
	}
	certs, err := certutil.ParseCertsPEM(data)
	if err != nil {
		return bundle{}, fmt.Errorf("reading %s: %w: put the right certificate back", file, err)
	}
	return bundle{name: name, certs: certs, keys: parseKeys(set[name+pki.KeySuffix])}, nil
}

// parseKeys returns the private keys in a PEM file. It ignores other blocks, such as curve parameters.
func parseKeys(data []byte) []bundleKey {
	var keys []bundleKey
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		encoded := pem.EncodeToMemory(block)
		private, err := keyutil.ParsePrivateKeyPEM(encoded)
		if signer, ok := private.(crypto.Signer); err == nil && ok {
			keys = append(keys, bundleKey{signer: signer, encoded: encoded})
		}
	}
	return keys
}

// keyOf returns the certificate's key, if the bundle contains it.
func (b bundle) keyOf(cert *x509.Certificate) (bundleKey, bool) {
	public, ok := cert.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	at := slices.IndexFunc(b.keys, func(key bundleKey) bool { return ok && public.Equal(key.signer.Public()) })
	if at < 0 {
		return bundleKey{}, false
	}
	return b.keys[at], true
}

// signer returns the signing CA's certificate.
func (b bundle) signer() *x509.Certificate { return b.certs[0] }

// next returns the next authority's certificate, or nil if no rotation has begun.
func (b bundle) next() *x509.Certificate {
	for _, cert := range b.certs[1:] {
		if _, hasKey := b.keyOf(cert); hasKey {
			return cert
		}
	}
	return nil
}

// chain returns the certificate, followed by the bundle's authorities above it.
func (b bundle) chain(cert *x509.Certificate) []*x509.Certificate {
	chain := []*x509.Certificate{cert}
	for {
		at := slices.IndexFunc(b.certs, func(other *x509.Certificate) bool {
			return !slices.ContainsFunc(chain, other.Equal) && cert.CheckSignatureFrom(other) == nil
		})
		if at < 0 {
			return chain
		}
		cert = b.certs[at]
		chain = append(chain, cert)
	}
}

// retired returns the certificates that are still trusted, but belong to the chain of neither the signing CA
// nor the next authority.
func (b bundle) retired() []*x509.Certificate {
	used := b.chain(b.signer())
	if next := b.next(); next != nil {
		used = append(used, b.chain(next)...)
	}
	return slices.DeleteFunc(slices.Clone(b.certs), func(cert *x509.Certificate) bool { return slices.ContainsFunc(used, cert.Equal) })
}

// write writes the authority's files to the set. It removes the key file if the bundle has no keys.
func (b bundle) write(set Set) {
	raw := make([][]byte, len(b.certs))
	for i, cert := range b.certs {
		raw[i] = cert.Raw
	}
	set[b.name+pki.CertSuffix] = pki.EncodeCerts(raw...)
	var encoded [][]byte
	for _, key := range b.keys {
		encoded = append(encoded, key.encoded)
	}
	if len(encoded) == 0 {
		delete(set, b.name+pki.KeySuffix)
		return
	}
	set[b.name+pki.KeySuffix] = bytes.Join(encoded, nil)
}

// SigningCertificate returns the signing CA's certificate in PEM. Programs that sign need this certificate
// alone, because kube-controller-manager rejects a cluster-signing file that contains several certificates.
func SigningCertificate(set Set, authority string) ([]byte, error) {
	b, err := parseBundle(set, authority)
	if err != nil {
		return nil, err
	}
	return pki.EncodeCerts(b.signer().Raw), nil
}
