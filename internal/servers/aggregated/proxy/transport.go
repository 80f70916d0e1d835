package proxy

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
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
	// keepAlive and probes find dead peers under streams that may be silent for
	// hours: within 20 s.
	keepAlive      = 5 * time.Second
	probes         = 3
	maxIdlePerHost = 25
	// maxLasting and maxUpgrades bound what is under way to one member for long, and so
	// the connections: watches share them over HTTP/2, an upgrade has its own. A
	// hundred users with twenty watches each are within the bounds.
	maxLasting  = 2000
	maxUpgrades = 500
)

// route is everything that connections to a cluster depend on. Two equal routes
// can share connections.
type route struct {
	endpoint string
	caBundle string
	insecure bool
	proxyURL string
	// proxyHeader is in canonical form: sorted lines of name and value.
	proxyHeader string
}

func routeTo(cluster *clusterv1alpha1.Cluster, caBundle []byte) route {
	var lines []string
	for name, values := range cluster.Spec.ProxyHeader {
		for value := range strings.SplitSeq(values, ",") {
			lines = append(lines, http.CanonicalHeaderKey(name)+"\x00"+strings.TrimSpace(value))
		}
	}
	slices.Sort(lines)
	return route{
		endpoint:    cluster.Spec.APIEndpoint,
		caBundle:    string(caBundle),
		insecure:    cluster.Spec.InsecureSkipTLSVerification,
		proxyURL:    cluster.Spec.ProxyURL,
		proxyHeader: strings.Join(lines, "\n"),
	}
}

func (r route) header() http.Header {
	header := http.Header{}
	for line := range strings.SplitSeq(r.proxyHeader, "\n") {
		if name, value, ok := strings.Cut(line, "\x00"); ok {
			header.Add(name, value)
		}
	}
	return header
}

func (r route) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: r.insecure}
	if r.insecure || r.caBundle == "" {
		return config, nil
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM([]byte(r.caBundle)) {
		return nil, errors.New("the CA bundle holds no certificate")
	}
	return config, nil
}

// transport opens and keeps connections to one cluster.
type transport struct {
	// requests carries plain requests, many over one connection.
	requests *http.Transport
	// upgrades opens a connection for each request. It has a TLS configuration of
	// its own, since an upgrade needs HTTP/1.1.
	upgrades *http.Transport
}

func newTransport(r route) (*transport, error) {
	tlsConfig, err := r.tlsConfig()
	if err != nil {
		return nil, err
	}
	dial, err := r.dialer()
	if err != nil {
		return nil, err
	}
	requests := &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: handshakeTimeout,
		ForceAttemptHTTP2:   true,
		// A member that vanished without a word must not hold a connection that
		// all requests share.
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		IdleConnTimeout:     idleTimeout,
		MaxIdleConnsPerHost: maxIdlePerHost,
		// The client and the member agree on compression; bodies pass as they are.
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	upgrades := &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     tlsConfig.Clone(),
		TLSHandshakeTimeout: handshakeTimeout,
		DisableCompression:  true,

		MaxResponseHeaderBytes: maxHeaderBytes,
		// A connection is for one stream; one that was refused is not kept.
		MaxIdleConnsPerHost: -1,
	}
	return &transport{requests: requests, upgrades: upgrades}, nil
}

func (t *transport) closeIdle() {
	t.requests.CloseIdleConnections()
	t.upgrades.CloseIdleConnections()
}

// dialer returns how connections to the cluster are opened: directly, or by way
// of its proxy. Plain requests and upgrades both use it, hence the proxy is not
// left to http.Transport, which would leave upgrades out.
func (r route) dialer() (dialFunc, error) {
	alive := net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive, Count: probes}
	direct := (&net.Dialer{Timeout: dialTimeout, KeepAliveConfig: alive}).DialContext
	if r.proxyURL == "" {
		return direct, nil
	}
	proxyURL, err := url.Parse(r.proxyURL)
	if err != nil {
		return nil, fmt.Errorf("reading spec.proxyURL: %w", err)
	}
	return dialThrough(proxyURL, r.header(), direct)
}
