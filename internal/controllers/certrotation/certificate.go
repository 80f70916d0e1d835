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

// identity is who a kubeconfig says that its user is.
type identity struct {
	kubeconfig *clientcmdapi.Config
	// user is the name of the entry of the context.
	user string
	// chain is the client certificate, the leaf first.
	chain []*x509.Certificate
}

var errNoCertificate = errors.New("its user has no client-certificate-data, so there is nothing to rotate; switch certRotation off")

// parse reads the identity of a context, of the current one if it has no name.
func parse(kubeconfig []byte, context string) (*identity, error) {
	if len(kubeconfig) == 0 {
		return nil, errors.New("it is empty")
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("it is no kubeconfig: %w", err)
	}
	context = cmp.Or(context, config.CurrentContext)
	of, ok := config.Contexts[context]
	if !ok {
		return nil, fmt.Errorf("it has no context %q", context)
	}
	user, ok := config.AuthInfos[of.AuthInfo]
	if !ok {
		return nil, fmt.Errorf("it has no user %q", of.AuthInfo)
	}
	if len(user.ClientCertificateData) == 0 {
		return nil, errNoCertificate
	}
	chain, err := certutil.ParseCertsPEM(user.ClientCertificateData)
	if err != nil {
		return nil, fmt.Errorf("its client certificate: %w", err)
	}
	return &identity{kubeconfig: config, user: of.AuthInfo, chain: chain}, nil
}

// with returns the kubeconfig with another certificate and its key.
func (i *identity) with(certificate, key []byte) ([]byte, error) {
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return nil, fmt.Errorf("the certificate that was issued does not fit the key: %w", err)
	}
	next := i.kubeconfig.DeepCopy()
	next.AuthInfos[i.user].ClientCertificateData, next.AuthInfos[i.user].ClientKeyData = certificate, key
	encoded, err := clientcmd.Write(*next)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	return encoded, nil
}

// valid is the time in which all certificates of a chain are.
func valid(chain []*x509.Certificate) (from, until time.Time) {
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
	from, until := valid(chain)
	return until.Sub(from)
}

// due tells whether threshold or less is left of the life of a chain.
func due(chain []*x509.Certificate, threshold float64, now time.Time) bool {
	_, until := valid(chain)
	total := lifetime(chain)
	return total <= 0 || float64(until.Sub(now)) <= threshold*float64(total)
}
