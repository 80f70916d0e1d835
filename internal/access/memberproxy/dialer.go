package memberproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/proxy"
)

// proxyError is an error of the proxy in front of a member, or of the connection to this proxy.
type proxyError struct {
	action string
	cause  error
}

func (p *proxyError) Error() string { return p.action + ": " + p.cause.Error() }

func (p *proxyError) Unwrap() error { return p.cause }

// dialFunc opens a connection to an address.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Dial and DialContext implement the dialer interfaces of the SOCKS5 library.
func (d dialFunc) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

// DialContext opens a connection. The attempt ends when the context ends.
func (d dialFunc) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

// dialThrough returns a dialFunc that connects through a proxy. direct connects to the proxy. The
// header is sent only to HTTP proxies.
func dialThrough(proxyURL *url.URL, header http.Header, direct dialFunc) (dialFunc, error) {
	switch proxyURL.Scheme {
	case "http", "https":
		return httpProxy{url: proxyURL, header: header, direct: direct}.dial, nil
	case "socks5":
		return dialSOCKS5(proxyURL, direct)
	}
	return nil, fmt.Errorf("proxy scheme %q is not http, https or socks5", proxyURL.Scheme)
}

func dialSOCKS5(proxyURL *url.URL, direct dialFunc) (dialFunc, error) {
	var auth *proxy.Auth
	if proxyURL.User != nil {
		password, _ := proxyURL.User.Password()
		auth = &proxy.Auth{User: proxyURL.User.Username(), Password: password}
	}
	dialer, err := proxy.SOCKS5("tcp", withPort(proxyURL, "1080"), auth, direct)
	if err != nil {
		return nil, fmt.Errorf("using SOCKS5 proxy %s: %w", proxyURL.Redacted(), err)
	}
	contextDialer, ok := dialer.(proxy.ContextDialer)
	if !ok {
		return nil, fmt.Errorf("using SOCKS5 proxy %s: the dialer does not support contexts", proxyURL.Redacted())
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		// The handshake with the proxy is limited by the dial timeout.
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		conn, err := contextDialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, &proxyError{fmt.Sprintf("reaching %s through proxy %s", address, proxyURL.Redacted()), err}
		}
		return conn, nil
	}, nil
}

// httpProxy opens tunnels with CONNECT.
type httpProxy struct {
	url    *url.URL
	header http.Header
	direct dialFunc
}

func (h httpProxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := h.connect(ctx, network)
	if err != nil {
		return nil, &proxyError{"reaching proxy " + h.url.Redacted(), err}
	}
	// The handshake ends after the dial timeout, or when the context ends.
	deadline := time.Now().Add(dialTimeout)
	if err := conn.SetDeadline(deadline); err != nil {
		_ = conn.Close()
		return nil, &proxyError{"reaching proxy " + h.url.Redacted(), err}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err = h.tunnel(conn, address)
	if !stop() {
		err = errors.Join(ctx.Err(), err)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
		return nil, &proxyError{fmt.Sprintf("reaching %s through proxy %s", address, h.url.Redacted()), err}
	}
	return conn, nil
}

func (h httpProxy) connect(ctx context.Context, network string) (net.Conn, error) {
	if h.url.Scheme == "http" {
		return h.direct(ctx, network, withPort(h.url, "80"))
	}
	conn, err := h.direct(ctx, network, withPort(h.url, "443"))
	if err != nil {
		return nil, err
	}
	secured := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: h.url.Hostname()})
	handshakeCtx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := secured.HandshakeContext(handshakeCtx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}

// tunnel sends the CONNECT request for address.
func (h httpProxy) tunnel(conn net.Conn, address string) error {
	req := &http.Request{
		Method: http.MethodConnect,
		URL:    &url.URL{Opaque: address},
		Host:   address,
		Header: h.header.Clone(),
	}
	if h.url.User != nil && req.Header.Get("Proxy-Authorization") == "" {
		password, _ := h.url.User.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(h.url.User.Username() + ":" + password))
		req.Header.Set("Proxy-Authorization", "Basic "+credentials)
	}
	if err := req.Write(conn); err != nil {
		return err
	}
	reader := bufio.NewReader(conn)
	// A response to CONNECT has no body. The bytes that follow belong to the tunnel.
	resp, err := http.ReadResponse(reader, req) //nolint:bodyclose // see above
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the proxy returns %s", resp.Status)
	}
	// Reject a server that sends data first. In TLS and HTTP, the client sends first. The reader
	// has buffered the data of the server, so the data would be missing in the tunnel.
	if reader.Buffered() > 0 {
		return errors.New("the server sent data before the client")
	}
	return nil
}

func withPort(u *url.URL, port string) string {
	if u.Port() != "" {
		port = u.Port()
	}
	return net.JoinHostPort(u.Hostname(), port)
}
