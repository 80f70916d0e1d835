package hook

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/utils/lru"
)

const (
	// maxDial limits the time in which a network connection opens.
	maxDial = 10 * time.Second
	// maxHandshake limits the time of a TLS handshake.
	maxHandshake = 10 * time.Second
	// maxIdle is the time after which an unused connection is closed.
	maxIdle = 90 * time.Second
	// maxIdleConnections limits the unused connections of one transport.
	maxIdleConnections = 32
	// maxHeaderBytes limits the header of a response.
	maxHeaderBytes = 64 << 10
	// maxTransports limits the number of transports.
	maxTransports = 1000
)

// transportKey identifies the webhooks that share connections.
type transportKey struct {
	authorities [sha256.Size]byte
	serverName  string
}

// transports holds the pools of connections. The calls of a webhook bound the number of its open
// connections.
type transports struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex
	kept *lru.Cache
}

func newTransports(dial func(ctx context.Context, network, address string) (net.Conn, error)) *transports {
	return &transports{dial: dial, kept: lru.NewWithEvictionFunc(maxTransports, func(_ lru.Key, dropped any) {
		dropped.(*http.Transport).CloseIdleConnections()
	})}
}

// closeIdle drops all transports, and closes the connections that no call uses.
func (t *transports) closeIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.Clear()
}

// get returns the transport for a CA bundle and a server name. An empty bundle means the authorities
// of this system, and an empty name the host of the URL.
func (t *transports) get(bundle []byte, serverName string) (*http.Transport, error) {
	var authorities *x509.CertPool
	if len(bundle) > 0 {
		authorities = x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(bundle) {
			return nil, errors.New("clientConfig.caBundle holds no certificate: set it to the PEM of the authority that signed the certificate of the webhook")
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := transportKey{sha256.Sum256(bundle), serverName}
	if found, ok := t.kept.Get(key); ok {
		return found.(*http.Transport), nil
	}
	created := t.create(authorities, serverName)
	t.kept.Add(key, created)
	return created, nil
}

// create returns a transport for HTTP/1.1 only: if a call fails, its connection is closed, and no
// other call uses it. The requests of HTTP/2 would share a connection that does not work.
func (t *transports) create(authorities *x509.CertPool, serverName string) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  proxyFor(serverName),
		DialContext:            t.dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities, ServerName: serverName},
		TLSHandshakeTimeout:    maxHandshake,
		MaxIdleConns:           maxIdleConnections,
		MaxIdleConnsPerHost:    maxCalls,
		IdleConnTimeout:        maxIdle,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true,
		Protocols:              &protocols,
	}
}

// proxyFor returns the proxy settings of the environment. They do not apply to Services, which only
// have a server name: a proxy outside of the cluster does not reach them.
func proxyFor(serverName string) func(*http.Request) (*url.URL, error) {
	if serverName != "" {
		return nil
	}
	return http.ProxyFromEnvironment
}
