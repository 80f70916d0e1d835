package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"karmada.io/karmada/internal/pki"
)

// Certificate describes a certificate in a set.
type Certificate struct {
	// Name is the file name without ".crt". For an authority's further certificates, it is followed by their
	// role, such as "ca (next)".
	Name string `json:"name"`
	// Subject and Issuer are distinguished names.
	Subject string `json:"subject,omitempty"`
	Issuer  string `json:"issuer,omitempty"`
	// Serial is the serial number in hexadecimal digits. It distinguishes the authorities of a rotation,
	// which have the same subject.
	Serial string `json:"serial,omitempty"`
	// NotBefore and NotAfter limit the validity.
	NotBefore time.Time `json:"notBefore,omitzero"`
	NotAfter  time.Time `json:"notAfter,omitzero"`
	// RenewAt is the beginning of the last third of the lifetime. From then on, Ensure issues the certificate
	// again, or the authority should be rotated.
	RenewAt time.Time `json:"renewAt,omitzero"`
	// IsAuthority means that the certificate belongs to an authority, which only a rotation replaces.
	IsAuthority bool `json:"isAuthority"`
	// Problem is a predicate that says why the certificate cannot be used, such as "expired on 2027-01-02".
	// It is empty if there is no problem.
	Problem string `json:"problem,omitempty"`
}

// IsDue reports whether the certificate is due for renewal or, if it belongs to an authority, for a
// rotation.
func (c Certificate) IsDue(now time.Time) bool { return !now.Before(c.RenewAt) }

// Inspect describes the set's certificates: authorities first, then the certificates that they sign, then
// others. The set may be incomplete and may contain anything.
func Inspect(set Set, now time.Time) []Certificate {
	var found []Certificate
	for _, name := range namesIn(set) {
		certs, err := certutil.ParseCertsPEM(set[name+pki.CertSuffix])
		if err != nil {
			found = append(found, Certificate{Name: name, IsAuthority: slices.Contains(AuthorityNames(), name),
				Problem: "cannot be read: " + err.Error()})
			continue
		}
		if slices.Contains(AuthorityNames(), name) {
			found = append(found, inspectAuthority(set, name, now)...)
			continue
		}
		described := describe(name, certs[0], now)
		if described.Problem == "" {
			described.Problem = leafProblem(set, name, certs, now)
		}
		found = append(found, described)
	}
	return found
}

// namesIn returns the names of the set's certificates in output order.
func namesIn(set Set) []string {
	var present, others []string
	known := append(AuthorityNames(), LeafNames()...)
	for _, name := range known {
		if _, ok := set[name+pki.CertSuffix]; ok {
			present = append(present, name)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(set)) {
		if name, isCert := strings.CutSuffix(file, pki.CertSuffix); isCert && !slices.Contains(known, name) {
			others = append(others, name)
		}
	}
	return append(present, others...)
}

func describe(name string, cert *x509.Certificate, now time.Time) Certificate {
	described := Certificate{
		Name: name, Subject: cert.Subject.String(), Issuer: cert.Issuer.String(), Serial: fmt.Sprintf("%X", cert.SerialNumber),
		IsAuthority: cert.IsCA,
		NotBefore:   cert.NotBefore.UTC(), NotAfter: cert.NotAfter.UTC(), RenewAt: pki.RenewalTime(cert).UTC(),
	}
	switch {
	case now.After(cert.NotAfter):
		described.Problem = "expired on " + formatDate(cert.NotAfter)
	case now.Before(cert.NotBefore):
		described.Problem = "is not valid before " + cert.NotBefore.UTC().Format(time.RFC3339)
	}
	return described
}

// inspectAuthority describes all certificates of an authority's bundle.
func inspectAuthority(set Set, name string, now time.Time) []Certificate {
	b, err := parseBundle(set, name)
	if err != nil {
		return []Certificate{{Name: name, IsAuthority: true, Problem: err.Error()}}
	}
	var found []Certificate
	for i, cert := range b.certs {
		described := describe(name, cert, now)
		switch {
		case i == 0 && described.Problem == "":
			described.Problem = b.signerProblem(set)
		case i == 0:
		case cert.Equal(b.next()):
			described.Name += " (next)"
		default:
			// An expired certificate that is only trusted does no harm.
			described.Name, described.Problem = described.Name+" (trusted)", ""
		}
		found = append(found, described)
	}
	return found
}

// signerProblem returns why the signing CA cannot sign. A missing key is not a problem, because an
// administrator may store it elsewhere.
func (b bundle) signerProblem(set Set) string {
	data, hasKey := set[b.name+pki.KeySuffix]
	_, isKeyKnown := b.keyOf(b.signer())
	switch {
	case !b.signer().IsCA:
		return "is not a certificate authority"
	case hasKey && len(data) > 0 && !isKeyKnown && b.next() == nil:
		return "does not belong to the key in " + b.name + pki.KeySuffix
	}
	return ""
}

// leafProblem returns why a certificate that is currently valid cannot be used. certs[1:] are intermediate
// CAs.
func leafProblem(set Set, name string, certs []*x509.Certificate, now time.Time) string {
	at := slices.IndexFunc(leaves, func(row leafRow) bool { return row.name == name })
	key, hasKey := set[name+pki.KeySuffix]
	if !hasKey && at >= 0 {
		return "has no key"
	}
	if hasKey {
		if _, err := tls.X509KeyPair(set[name+pki.CertSuffix], key); err != nil {
			return "has no usable key: " + err.Error()
		}
	}
	if at < 0 {
		return ""
	}
	return trustProblem(set, leaves[at].authority, certs, now)
}

// trustProblem returns why no certificate in the authority's file verifies the certificate.
func trustProblem(set Set, authority string, certs []*x509.Certificate, now time.Time) string {
	trusted, err := certutil.ParseCertsPEM(set[authority+pki.CertSuffix])
	if err != nil {
		return "has no readable authority " + authority + pki.CertSuffix
	}
	options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	for _, cert := range trusted {
		options.Roots.AddCert(cert)
	}
	for _, cert := range certs[1:] {
		options.Intermediates.AddCert(cert)
	}
	if _, err := certs[0].Verify(options); err == nil {
		return ""
	}
	for _, cert := range trusted {
		if now.After(cert.NotAfter) && certs[0].CheckSignatureFrom(cert) == nil {
			return "is signed by the authority " + authority + ", which expired on " + formatDate(cert.NotAfter)
		}
	}
	return "is not signed by the authority " + authority
}
