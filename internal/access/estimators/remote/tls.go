package remote

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS configures the encryption of connections. The files are read at each handshake. Connections
// are not encrypted if there is no CAFile and SkipVerify is false.
type TLS struct {
	// CAFile contains the authorities of the certificates of estimators.
	CAFile string
	// CertFile and KeyFile are the client certificate. Both or none are set.
	CertFile, KeyFile string
	// SkipVerify accepts every certificate.
	SkipVerify bool
}

func (t TLS) isEnabled() bool { return t.CAFile != "" || t.SkipVerify }

// load reads the files and returns the configuration of a client. It returns nil if connections are
// not encrypted.
func (t TLS) load() (*tls.Config, error) {
	if !t.isEnabled() {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: t.SkipVerify}
	if t.CAFile != "" && !t.SkipVerify {
		raw, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the authorities of estimators: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(raw) {
			return nil, fmt.Errorf("%s contains no PEM certificate: it must contain the authorities of the certificates of estimators", t.CAFile)
		}
	}
	if t.CertFile != "" && t.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("loading the client certificate %s with key %s for estimators: %w", t.CertFile, t.KeyFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
