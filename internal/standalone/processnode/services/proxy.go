package services

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"karmada.io/karmada/internal/pki"
)

// Most Linux machines reserve ports below 1024 for root, but Services of webhooks and aggregated API
// servers use port 443. An API server in a Pod reaches such Services through a proxy, because
// kube-apiserver can use a proxy for these connections. The proxy exists only on machines on which
// the node cannot listen on port 443.

// Names of the proxy's certificates.
const (
	proxyAuthority   = "ca"
	proxyCertificate = "proxy"
)

// reservedPort is the port that decides whether the machine reserves ports for root.
const reservedPort = "443"

// maxProxyRequestBytes is the size of the buffer for a request.
const maxProxyRequestBytes = 4 << 10

// proxyRequestTimeout limits how long a client of the proxy may take to send its request.
const proxyRequestTimeout = 10 * time.Second

// hasReservedPorts reports whether this process may not listen on ports below 1024.
func hasReservedPorts() bool {
	listener, err := net.Listen("tcp4", net.JoinHostPort(loopback.String(), reservedPort))
	if err == nil {
		_ = listener.Close()
	}
	return errors.Is(err, syscall.EACCES)
}

// dialFunc connects to a host and port.
type dialFunc func(ctx context.Context, host, port string) (net.Conn, error)

// proxy forwards the connections of HTTP CONNECT requests.
type proxy struct {
	listener net.Listener
	dial     dialFunc
	certs    pki.Dir
}

// newProxy opens a proxy's port. The proxy's clients use the certificate in dir.
func newProxy(dir string, dial dialFunc) (*proxy, error) {
	certs := pki.Dir{Path: dir}
	authority, err := certs.EnsureAuthority(proxyAuthority, "karmada-services")
	if err != nil {
		return nil, err
	}
	if _, err := authority.EnsureLeaf(proxyCertificate,
		pki.Leaf{CommonName: "karmada-services", Hosts: []string{loopback.String()}}); err != nil {
		return nil, err
	}
	certificate, err := tls.LoadX509KeyPair(certs.CertFile(proxyCertificate), certs.KeyFile(proxyCertificate))
	if err != nil {
		return nil, fmt.Errorf("loading the certificate of the proxy to Services: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(authority.Cert)
	listener, err := net.Listen("tcp4", net.JoinHostPort(loopback.String(), "0"))
	if err != nil {
		return nil, fmt.Errorf("opening a port for the proxy to Services: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	return &proxy{listener: tls.NewListener(listener, config), dial: dial, certs: certs}, nil
}

// Proxy describes how a client uses the proxy.
type Proxy struct {
	URL string
	// CAFile, CertFile and KeyFile are the certificate files with which the proxy and its clients
	// authenticate each other.
	CAFile, CertFile, KeyFile string
}

// Proxy returns the proxy that connects to all Services, including those whose ports are reserved
// for root. It is nil if no port is reserved.
func (s *Services) Proxy() *Proxy {
	if s.proxy == nil {
		return nil
	}
	certs := s.proxy.certs
	return &Proxy{
		URL:    "https://" + s.proxy.listener.Addr().String(),
		CAFile: certs.CertFile(proxyAuthority), CertFile: certs.CertFile(proxyCertificate), KeyFile: certs.KeyFile(proxyCertificate),
	}
}

// run serves the proxy until ctx ends. It returns when all connections are closed.
func (p *proxy) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = p.listener.Close() })
	defer stop()
	var goroutines sync.WaitGroup
	defer goroutines.Wait()
	connections := acceptor{
		listener: p.listener, slots: make(chan struct{}, maxConnections), goroutines: &goroutines,
		isOpen: func() bool { return ctx.Err() == nil },
	}
	connections.run(ctx, func(client net.Conn) { p.serve(ctx, client) })
}

// serve handles one connection, which has one request.
func (p *proxy) serve(ctx context.Context, client net.Conn) {
	defer func() { _ = client.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stop()
	_ = client.SetDeadline(time.Now().Add(proxyRequestTimeout))
	reader := bufio.NewReaderSize(client, maxProxyRequestBytes)
	r, err := http.ReadRequest(reader)
	if err != nil {
		return
	}
	host, port, err := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect || err != nil || reader.Buffered() > 0 {
		_, _ = io.WriteString(client, "HTTP/1.1 405 Use CONNECT with a host and a port\r\n\r\n")
		return
	}
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	server, err := p.dial(dialing, host, port)
	if err != nil {
		_, _ = fmt.Fprintf(client, "HTTP/1.1 502 %s\r\n\r\n", strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	defer func() { _ = server.Close() }()
	_ = client.SetDeadline(time.Time{})
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		join(ctx, client, server)
	}
}

var errNoReadyPod = errors.New("no Pod of the Service is ready")

// dialProxied connects to a port of a Service, or to any other host.
func (s *Services) dialProxied(ctx context.Context, host, port string) (net.Conn, error) {
	r := &request{question: dnsmessage.Question{Type: dnsmessage.TypeA}, target: strings.TrimSuffix(host, ".")}
	r.resolve(s.directory(), "")
	if !r.isComplete {
		return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(r.target, port)) //nolint:wrapcheck // the proxy only prints it
	}
	if r.code != dnsmessage.RCodeSuccess || len(r.addresses) == 0 {
		return nil, fmt.Errorf("resolving %s: %w", host, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true})
	}
	target, err := netip.ParseAddrPort(net.JoinHostPort(r.addresses[0].String(), port))
	if err != nil {
		return nil, fmt.Errorf("port %q: %w", port, err)
	}
	if !Contains(target.Addr()) {
		return (&net.Dialer{}).DialContext(ctx, "tcp4", target.String()) //nolint:wrapcheck // the proxy only prints it
	}
	if found := s.findForwarder(target); found != nil {
		if pod := found.dial(); pod != nil {
			return pod, nil
		}
	}
	return nil, fmt.Errorf("connecting to %s:%s: %w", host, port, errNoReadyPod)
}

// findForwarder returns the forwarder for an address, whether the forwarder can listen or not.
func (s *Services) findForwarder(address netip.AddrPort) *forwarder {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, existing := range s.forwarders {
		if key.address == address {
			return existing
		}
	}
	return nil
}
