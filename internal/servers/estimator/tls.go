package estimator

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"

	"google.golang.org/grpc/credentials"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/pki"
)

// Certificates are the files for TLS. Changed files are used for new connections.
type Certificates struct {
	// CertFile and KeyFile are the certificate of the server and its key. Without them, the server
	// does not use TLS.
	CertFile, KeyFile string
	// ClientCAFile is the bundle of the authorities of client certificates. With it, clients must
	// have a certificate, unless SkipClientVerify is true.
	ClientCAFile     string
	SkipClientVerify bool
}

func (c Certificates) isEnabled() bool { return c.CertFile != "" || c.KeyFile != "" }

func (c Certificates) verifiesClients() bool { return c.ClientCAFile != "" && !c.SkipClientVerify }

// serverTLS holds the current certificates.
type serverTLS struct {
	certificate *pki.ServingCertificate
	// clientCAs is nil if client certificates are not verified.
	clientCAs *caFile
}

func newServerTLS(c Certificates) (*serverTLS, error) {
	certificate, err := pki.LoadServingCertificate(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("starting TLS: %w", err)
	}
	s := &serverTLS{certificate: certificate}
	if c.verifiesClients() {
		s.clientCAs = &caFile{path: c.ClientCAFile}
		if _, err := s.clientCAs.read(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *serverTLS) credentials(logger klog.Logger) credentials.TransportCredentials {
	config := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: s.certificate.GetCertificate, NextProtos: []string{"h2"}}
	if s.clientCAs == nil {
		return credentials.NewTLS(config)
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	perConnection := config.Clone()
	perConnection.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := s.clientCAs.read()
		if err != nil {
			logger.Error(err, "Using the authorities that were read before")
		}
		current := config.Clone()
		current.ClientCAs = pool
		return current, nil
	}
	return credentials.NewTLS(perConnection)
}

// caFile is a bundle of authorities. It is used concurrently.
type caFile struct {
	path string

	mu      sync.Mutex
	content []byte
	pool    *x509.CertPool
}

var errNoCertificates = errors.New("the file contains no certificates in PEM format")

// read reads the file. If that fails, it returns an error with the authorities that it read before.
func (c *caFile) read() (*x509.CertPool, error) {
	content, err := os.ReadFile(c.path)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		return c.pool, fmt.Errorf("reading the authorities of client certificates: %w", err)
	}
	if c.pool != nil && bytes.Equal(content, c.content) {
		return c.pool, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return c.pool, fmt.Errorf("reading the authorities of client certificates in %s: %w", c.path, errNoCertificates)
	}
	c.content, c.pool = content, pool
	return pool, nil
}
