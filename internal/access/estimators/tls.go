package estimators

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc/credentials"
)

// ClientTLS configures the encryption of connections. The files are read at each handshake. Connections
// are not encrypted if there is no CAFile and SkipVerify is false.
type ClientTLS struct {
	// CAFile contains the authorities of the certificates of estimators.
	CAFile string
	// CertFile and KeyFile are the client certificate. Both or none are set.
	CertFile, KeyFile string
	// SkipVerify accepts every certificate.
	SkipVerify bool
}

func (t ClientTLS) isEnabled() bool { return t.CAFile != "" || t.SkipVerify }

// load reads the files and returns the configuration of a client. It returns nil if connections are
// not encrypted.
func (t ClientTLS) load() (*tls.Config, error) {
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

// acceptNames makes a client accept certificates for serverName, too, besides those for the host of
// the address. The authorities stay the same. An empty name changes nothing.
func acceptNames(config *tls.Config, address, serverName string) {
	if serverName == "" || config.InsecureSkipVerify {
		return
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	roots := config.RootCAs
	// VerifyConnection replaces the default verification, which accepts one name only.
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if err := verifyServer(state.PeerCertificates, roots, host, serverName); err != nil {
			return fmt.Errorf("verifying the certificate of the estimator: %w", err)
		}
		return nil
	}
}

// verifyServer verifies that an authority issued the first certificate, to one of the names.
func verifyServer(certificates []*x509.Certificate, roots *x509.CertPool, host, serverName string) error {
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, intermediate := range certificates[1:] {
		options.Intermediates.AddCert(intermediate)
	}
	if _, err := certificates[0].Verify(options); err != nil {
		return err
	}
	err := certificates[0].VerifyHostname(host)
	if err != nil && certificates[0].VerifyHostname(serverName) == nil {
		return nil
	}
	return err
}

// tlsCredentials read the TLS files at each handshake, so that renewed files are used without a
// file watch. They record the error of the handshake.
type tlsCredentials struct {
	credentials.TransportCredentials
	files      ClientTLS
	serverName string
	lastDial   *dialResult
}

func newTLSCredentials(files ClientTLS, serverName string, lastDial *dialResult) credentials.TransportCredentials {
	return &tlsCredentials{TransportCredentials: credentials.NewTLS(nil), files: files, serverName: serverName, lastDial: lastDial}
}

// ClientHandshake implements credentials.TransportCredentials.
func (t *tlsCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := t.files.load()
	if err != nil {
		t.lastDial.set(err)
		return nil, nil, err
	}
	acceptNames(config, authority, t.serverName)
	secured, info, err := credentials.NewTLS(config).ClientHandshake(ctx, authority, raw)
	t.lastDial.set(err)
	return secured, info, err
}

// Clone implements credentials.TransportCredentials.
func (t *tlsCredentials) Clone() credentials.TransportCredentials {
	return newTLSCredentials(t.files, t.serverName, t.lastDial)
}
