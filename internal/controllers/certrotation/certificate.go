package certrotation

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
)

// clientIdentity is the user of a kubeconfig context, together with the client certificate of that
// user.
type clientIdentity struct {
	kubeconfig *clientcmdapi.Config
	// user is the name of the user entry of the context.
	user string
	// chain is the client certificate chain, the leaf first.
	chain []*x509.Certificate
}

var errNoCertificate = errors.New("the user has no client-certificate-data, so no certificate can be rotated; disable certRotation")

// parseIdentity parses the identity of a kubeconfig context. An empty name selects the current
// context.
func parseIdentity(kubeconfig []byte, context string) (*clientIdentity, error) {
	if len(kubeconfig) == 0 {
		return nil, errors.New("the kubeconfig is empty")
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig is invalid: %w", err)
	}
	context = cmp.Or(context, config.CurrentContext)
	kubeContext, ok := config.Contexts[context]
	if !ok {
		return nil, fmt.Errorf("the kubeconfig has no context %q", context)
	}
	user, ok := config.AuthInfos[kubeContext.AuthInfo]
	if !ok {
		return nil, fmt.Errorf("the kubeconfig has no user %q", kubeContext.AuthInfo)
	}
	if len(user.ClientCertificateData) == 0 {
		return nil, errNoCertificate
	}
	chain, err := certutil.ParseCertsPEM(user.ClientCertificateData)
	if err != nil {
		return nil, fmt.Errorf("parsing the client certificate: %w", err)
	}
	return &clientIdentity{kubeconfig: config, user: kubeContext.AuthInfo, chain: chain}, nil
}

// withCertificate returns the kubeconfig with another certificate and key.
func (c *clientIdentity) withCertificate(certificate, key []byte) ([]byte, error) {
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return nil, fmt.Errorf("the issued certificate does not match the key: %w", err)
	}
	next := c.kubeconfig.DeepCopy()
	next.AuthInfos[c.user].ClientCertificateData, next.AuthInfos[c.user].ClientKeyData = certificate, key
	encoded, err := clientcmd.Write(*next)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	return encoded, nil
}

// validityPeriod returns the period in which all certificates of a chain are valid.
func validityPeriod(chain []*x509.Certificate) (from, until time.Time) {
	from, until = chain[0].NotBefore, chain[0].NotAfter
	for _, certificate := range chain[1:] {
		if certificate.NotBefore.After(from) {
			from = certificate.NotBefore
		}
		if certificate.NotAfter.Before(until) {
			until = certificate.NotAfter
		}
	}
	return from, until
}

func lifetime(chain []*x509.Certificate) time.Duration {
	from, until := validityPeriod(chain)
	return until.Sub(from)
}

// isRenewalDue reports whether the remaining part of the lifetime of a certificate chain is at most
// threshold.
func isRenewalDue(chain []*x509.Certificate, threshold float64, now time.Time) bool {
	_, until := validityPeriod(chain)
	total := lifetime(chain)
	return total <= 0 || float64(until.Sub(now)) <= threshold*float64(total)
}
