package memberproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/agentaddress"
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
	// keepAlive and keepAliveProbes are chosen so that failed peers of idle streams are detected within
	// 20 s.
	keepAlive       = 5 * time.Second
	keepAliveProbes = 3
	maxIdlePerHost  = 25
)

// connectionKey identifies the connection settings for a cluster. Requests with equal keys share
// connections.
func connectionKey(cluster *clusterv1alpha1.Cluster, caBundle []byte) string {
	spec := &cluster.Spec
	return fmt.Sprintf("%q %q %t %q %q %t",
		spec.APIEndpoint, caBundle, spec.InsecureSkipTLSVerification, spec.ProxyURL, spec.ProxyHeader, agentaddress.Guards(cluster))
}

// transport contains the connections to one cluster.
type transport struct {
	// requests sends requests without an upgrade. Many requests share one connection.
	requests *http.Transport
	// upgrades opens a connection for each request, because an upgrade requires HTTP/1.1.
	upgrades *http.Transport
}

func newTransport(cluster *clusterv1alpha1.Cluster, caBundle []byte, guard *agentaddress.Guard) (*transport, error) {
	requests, err := newHTTPTransport(cluster, caBundle, guard)
	if err != nil {
		return nil, err
	}
	requests.ForceAttemptHTTP2 = true
	// Pings detect that a member no longer responds. They are needed because all requests share a
	// connection.
	requests.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	requests.IdleConnTimeout, requests.MaxIdleConnsPerHost = idleTimeout, maxIdlePerHost
	upgrades, err := newHTTPTransport(cluster, caBundle, guard)
	if err != nil {
		return nil, err
	}
	// A connection serves one stream. If an upgrade is rejected, its connection is not kept.
	upgrades.MaxIdleConnsPerHost = -1
	return &transport{requests: requests, upgrades: upgrades}, nil
}

// newHTTPTransport returns a transport that connects to the cluster, directly or through the cluster's proxy.
func newHTTPTransport(cluster *clusterv1alpha1.Cluster, caBundle []byte, guard *agentaddress.Guard) (*http.Transport, error) {
	alive := net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive, Count: keepAliveProbes}
	dialer := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: alive}
	t := &http.Transport{
		DialContext:         dialer.DialContext,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: cluster.Spec.InsecureSkipTLSVerification},
		TLSHandshakeTimeout: handshakeTimeout,
		// The client and the member negotiate compression. Bodies are forwarded unchanged.
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	if agentaddress.Guards(cluster) {
		t.DialContext = guard.Dialer(dialer, cluster.Name, agentaddress.FieldOf(cluster.Spec.ProxyURL))
	}
	if len(caBundle) > 0 {
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(caBundle) {
			return nil, errors.New("the CA bundle contains no certificate")
		}
	}
	if cluster.Spec.ProxyURL == "" {
		return t, nil
	}
	return t, useProxy(t, &cluster.Spec)
}

// useProxy makes the transport connect through the cluster's proxy. The header is sent to HTTP proxies
// only.
func useProxy(t *http.Transport, spec *clusterv1alpha1.ClusterSpec) error {
	proxyURL, err := url.Parse(spec.ProxyURL)
	if err != nil {
		return fmt.Errorf("parsing spec.proxyURL: %w", err)
	}
	switch proxyURL.Scheme {
	case "http", "socks5":
	case "https":
		// The proxy's certificate is not issued by the member's CA.
		dial := t.DialContext
		t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
			defer cancel()
			secured := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: proxyURL.Hostname()})
			if err := secured.HandshakeContext(ctx); err != nil {
				_ = conn.Close()
				return nil, err
			}
			return secured, nil
		}
	default:
		return fmt.Errorf("proxy scheme %q is not http, https or socks5", proxyURL.Scheme)
	}
	t.ProxyConnectHeader = http.Header{}
	for name, values := range spec.ProxyHeader {
		for value := range strings.SplitSeq(values, ",") {
			t.ProxyConnectHeader.Add(name, strings.TrimSpace(value))
		}
	}
	if t.ProxyConnectHeader.Get("Proxy-Authorization") != "" && proxyURL.Scheme != "socks5" {
		// The credentials in the URL would replace those in the header.
		proxyURL.User = nil
	}
	t.Proxy = http.ProxyURL(proxyURL)
	t.OnProxyConnectResponse = func(_ context.Context, proxyURL *url.URL, _ *http.Request, resp *http.Response) error {
		if resp.StatusCode == http.StatusOK {
			return nil
		}
		return &net.OpError{Op: "proxyconnect", Net: "tcp", Err: fmt.Errorf("proxy %s returns %s", proxyURL.Redacted(), resp.Status)}
	}
	return nil
}

// isProxyError reports whether the cluster's proxy, or the connection to it, failed.
func isProxyError(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && (operation.Op == "proxyconnect" || operation.Op == "socks connect")
}

func (t *transport) closeIdle() {
	t.requests.CloseIdleConnections()
	t.upgrades.CloseIdleConnections()
}
