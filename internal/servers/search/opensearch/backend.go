package opensearch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

// NewBackend returns the back end that a ResourceRegistry configures.
func NewBackend(config *searchv1alpha1.OpenSearchConfig) Backend {
	return Backend{
		Addresses: config.Addresses, SecretNamespace: config.SecretRef.Namespace, SecretName: config.SecretRef.Name,
	}
}

// String returns the addresses without credentials.
func (b Backend) String() string {
	addresses := make([]string, 0, len(b.Addresses))
	for _, address := range b.Addresses {
		addresses = append(addresses, redact(address))
	}
	return strings.Join(addresses, ",")
}

// redact removes the credentials of a URL.
func redact(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return "(invalid URL)"
	}
	parsed.User = nil
	return parsed.String()
}

// key returns the same string for equal back ends.
func (b Backend) key() string {
	return strings.Join(append([]string{b.SecretNamespace, b.SecretName}, b.Addresses...), "\n")
}

// secretName returns the namespace and name of the Secret, for messages.
func (b Backend) secretName() string { return b.SecretNamespace + "/" + b.SecretName }

// credentials are the contents of a back end's Secret.
type credentials struct {
	username, password string
	tls                *tls.Config
}

// newCredentials parses the data of the Secret. data is nil if there is no Secret.
func (b Backend) newCredentials(data map[string][]byte) (credentials, error) {
	c := credentials{
		username: string(data[searchv1alpha1.SecretKeyUsername]),
		password: string(data[searchv1alpha1.SecretKeyPassword]),
		tls:      &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if err := c.readTLS(data); err != nil {
		return c, fmt.Errorf("reading Secret %s: %w", b.secretName(), err)
	}
	return c, nil
}

func (c *credentials) readTLS(data map[string][]byte) error {
	if ca := data[searchv1alpha1.SecretKeyCA]; len(ca) > 0 {
		c.tls.RootCAs = x509.NewCertPool()
		if !c.tls.RootCAs.AppendCertsFromPEM(ca) {
			return fmt.Errorf("key %s has no PEM certificate", searchv1alpha1.SecretKeyCA)
		}
	}
	certificate, key := data[searchv1alpha1.SecretKeyCertificate], data[searchv1alpha1.SecretKeyPrivateKey]
	switch {
	case len(certificate) > 0 && len(key) > 0:
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return fmt.Errorf("keys %s and %s: %w", searchv1alpha1.SecretKeyCertificate, searchv1alpha1.SecretKeyPrivateKey, err)
		}
		c.tls.Certificates = []tls.Certificate{pair}
	case len(certificate) > 0 || len(key) > 0:
		return fmt.Errorf("a client certificate needs both keys %s and %s", searchv1alpha1.SecretKeyCertificate,
			searchv1alpha1.SecretKeyPrivateKey)
	}
	if text := data[searchv1alpha1.SecretKeyInsecureSkipVerify]; len(text) > 0 {
		skip, err := strconv.ParseBool(strings.TrimSpace(string(text)))
		if err != nil {
			return fmt.Errorf("key %s: %q is neither true nor false", searchv1alpha1.SecretKeyInsecureSkipVerify, text)
		}
		c.tls.InsecureSkipVerify = skip
	}
	return nil
}

// parseAddresses returns the URLs of the nodes.
func (b Backend) parseAddresses() ([]*url.URL, error) {
	if len(b.Addresses) == 0 {
		return nil, errors.New("the registry has no address of OpenSearch: set spec.backendStore.openSearch.addresses")
	}
	urls := make([]*url.URL, 0, len(b.Addresses))
	for _, address := range b.Addresses {
		parsed, err := url.Parse(address)
		if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
			return nil, fmt.Errorf("address %q of OpenSearch is no http or https URL with a host: correct spec.backendStore.openSearch.addresses of the registry", redact(address))
		}
		urls = append(urls, parsed)
	}
	return urls, nil
}
