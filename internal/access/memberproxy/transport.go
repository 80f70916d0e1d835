package memberproxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/agentaddress"
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
	// keepAlive and keepAliveProbes are chosen so that dead peers of idle streams are detected
	// within 20 s.
	keepAlive       = 5 * time.Second
	keepAliveProbes = 3
	maxIdlePerHost  = 25
	// maxLongRunning and maxUpgrades limit the long-running requests to one member, and thereby the
	// connections. Watches share connections over HTTP/2, but each upgrade has its own connection.
	// 100 users with 20 watches each stay below the limits.
	maxLongRunning = 2000
	maxUpgrades    = 500
)

// connectionSettings are the settings that connections to a cluster depend on. Clients with equal
// settings can share connections.
type connectionSettings struct {
	endpoint string
	caBundle string
	insecure bool
	proxyURL string
	// proxyHeader is the header for the proxy in a canonical form: sorted lines of name and value.
	proxyHeader string
	// agent is the name of the cluster if its agent chooses the addresses, and otherwise empty.
	agent string
}

func newConnectionSettings(cluster *clusterv1alpha1.Cluster, caBundle []byte) connectionSettings {
	var lines []string
	for name, values := range cluster.Spec.ProxyHeader {
		for value := range strings.SplitSeq(values, ",") {
			lines = append(lines, http.CanonicalHeaderKey(name)+"\x00"+strings.TrimSpace(value))
		}
	}
	slices.Sort(lines)
	settings := connectionSettings{
		endpoint:    cluster.Spec.APIEndpoint,
		caBundle:    string(caBundle),
		insecure:    cluster.Spec.InsecureSkipTLSVerification,
		proxyURL:    cluster.Spec.ProxyURL,
		proxyHeader: strings.Join(lines, "\n"),
	}
	if agentaddress.Guards(cluster) {
		settings.agent = cluster.Name
	}
	return settings
}

func (c connectionSettings) header() http.Header {
	header := http.Header{}
	for line := range strings.SplitSeq(c.proxyHeader, "\n") {
		if name, value, ok := strings.Cut(line, "\x00"); ok {
			header.Add(name, value)
		}
	}
	return header
}

func (c connectionSettings) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.insecure}
	if c.insecure || c.caBundle == "" {
		return config, nil
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM([]byte(c.caBundle)) {
		return nil, errors.New("the CA bundle contains no certificate")
	}
	return config, nil
}

// transport contains the connections to one cluster.
type transport struct {
	// requests sends requests without an upgrade. Many requests share one connection.
	requests *http.Transport
	// upgrades opens a connection for each request. It has its own TLS configuration, because an
	// upgrade requires HTTP/1.1.
	upgrades *http.Transport
}

func newTransport(r connectionSettings, guard *agentaddress.Guard) (*transport, error) {
	tlsConfig, err := r.tlsConfig()
	if err != nil {
		return nil, err
	}
	dial, err := r.dialer(guard)
	if err != nil {
		return nil, err
	}
	requests := &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: handshakeTimeout,
		ForceAttemptHTTP2:   true,
		// Pings detect that a member has disappeared. This matters because all requests share a
		// connection.
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		IdleConnTimeout:     idleTimeout,
		MaxIdleConnsPerHost: maxIdlePerHost,
		// The client and the member negotiate compression. Bodies are forwarded unchanged.
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	upgrades := &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     tlsConfig.Clone(),
		TLSHandshakeTimeout: handshakeTimeout,
		DisableCompression:  true,

		MaxResponseHeaderBytes: maxHeaderBytes,
		// A connection serves one stream. If an upgrade is rejected, its connection is not kept.
		MaxIdleConnsPerHost: -1,
	}
	return &transport{requests: requests, upgrades: upgrades}, nil
}

func (t *transport) closeIdle() {
	t.requests.CloseIdleConnections()
	t.upgrades.CloseIdleConnections()
}

// dialer returns the function that connects to the cluster, directly or through the proxy of the
// cluster. It connects to the proxy itself, because http.Transport does not use its proxy setting
// for upgrades.
func (c connectionSettings) dialer(guard *agentaddress.Guard) (dialFunc, error) {
	alive := net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive, Count: keepAliveProbes}
	dialer := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: alive}
	direct := dialer.DialContext
	if c.agent != "" {
		direct = guard.Dialer(dialer, c.agent, agentaddress.FieldOf(c.proxyURL))
	}
	if c.proxyURL == "" {
		return direct, nil
	}
	proxyURL, err := url.Parse(c.proxyURL)
	if err != nil {
		return nil, fmt.Errorf("parsing spec.proxyURL: %w", err)
	}
	return dialThrough(proxyURL, c.header(), direct)
}
