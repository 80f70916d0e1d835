package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/access/reconnect"
	"karmada.io/karmada/internal/programs"
)

const (
	// dialTimeout is how long a connection may take to come about. A partition
	// swallows what is sent, and what is sent again waits for longer each time: a
	// try that is given up early makes the end of the partition noticed early.
	dialTimeout = 3 * time.Second
	// refusedPause is when a request that was refused is sent again without new
	// credentials: an API server that starts may refuse what it takes a moment later.
	refusedPause = 5 * time.Second
	// patience is how long a request waits for the control plane, unless it is a
	// watch, which waits for as long as it takes.
	patience = 30 * time.Second
)

// connection is the way to the control plane. It notices at once that the control
// plane is back, and shows the credentials that the agent has now.
type connection struct {
	*credentials
	// plain answers at once, waiting is what waits for the control plane, and
	// forever is what waits for it whatever is asked.
	plain, waiting, forever *rest.Config
}

// connect prepares the way to the control plane; nothing is asked of it.
func connect(path, context string, qps float32, burst int) (*connection, error) {
	held, config, err := newCredentials(path, context)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = qps, burst
	c := &connection{credentials: held}
	if dynamic(config) {
		if config, err = c.following(config); err != nil {
			return nil, fmt.Errorf("reading the kubeconfig %s that --karmada-kubeconfig names: %w", path, err)
		}
	}
	c.plain = rest.AddUserAgent(config, programs.Agent)
	c.waiting = awaiting(c.plain, reconnect.Options{Limit: patience, WatchLimit: -1, Ended: held.moved, Unavailable: true, Lost: lost(config.Host), Back: back(config.Host)})
	c.forever = awaiting(c.plain, reconnect.Options{Limit: 365 * 24 * time.Hour, Ended: held.moved})
	return c, nil
}

// dynamic tells whether the credentials are ours to show: a certificate or a
// token. What else a kubeconfig can say renews itself, or never changes.
func dynamic(config *rest.Config) bool {
	return config.ExecProvider == nil && config.AuthProvider == nil && config.Username == ""
}

func awaiting(config *rest.Config, o reconnect.Options) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return reconnect.Transport(next, o) })
	return config
}

func lost(server string) func(error) {
	return func(err error) {
		klog.Background().Info("Waiting for the control plane", "server", server, "reason", err.Error())
	}
}

func back(server string) func(time.Duration) {
	return func(after time.Duration) {
		klog.Background().Info("The control plane answers again", "server", server, "after", after.Round(time.Millisecond))
	}
}

// following is a configuration that shows the current credentials, whatever they
// are.
func (c *connection) following(config *rest.Config) (*rest.Config, error) {
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext)
	c.renewed = dialer.CloseAll
	transport, err := c.transport(config, dialer)
	if err != nil {
		return nil, err
	}
	next := rest.AnonymousClientConfig(config)
	next.TLSClientConfig, next.Dial, next.Proxy, next.Transport = rest.TLSClientConfig{}, nil, nil, transport
	next.Impersonate = config.Impersonate
	next.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &authorized{next: next, credentials: c.credentials}
	})
	return next, nil
}

func (c *connection) transport(config *rest.Config, dialer *connrotation.Dialer) (*http.Transport, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	trusted, err := roots(config.CAData)
	if err != nil {
		return nil, fmt.Errorf("its certificate authority: %w", err)
	}
	transport := &http.Transport{
		Proxy: config.Proxy, DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25, IdleConnTimeout: 90 * time.Second,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: trusted, ServerName: config.ServerName,
			InsecureSkipVerify: config.Insecure, //nolint:gosec // the kubeconfig says so
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if shown := c.get().certificate; shown != nil {
					return shown, nil
				}
				return &tls.Certificate{}, nil
			},
		},
	}
	if transport.Proxy == nil {
		transport.Proxy = http.ProxyFromEnvironment
	}
	pinging, err := http2.ConfigureTransports(transport)
	if err != nil {
		return nil, fmt.Errorf("preparing connections: %w", err)
	}
	pinging.ReadIdleTimeout, pinging.PingTimeout = reconnect.IdleLimit, reconnect.PingLimit
	return transport, nil
}

// preferPrompt makes the connections of the libraries notice early that nobody is
// there, too, unless the operator has said how early.
func preferPrompt() {
	for name, limit := range map[string]time.Duration{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": reconnect.IdleLimit, "HTTP2_PING_TIMEOUT_SECONDS": reconnect.PingLimit} {
		if os.Getenv(name) == "" {
			_ = os.Setenv(name, fmt.Sprintf("%.0f", limit.Seconds()))
		}
	}
}

// authorized shows the token, and waits for other credentials when those that the
// agent has are refused.
type authorized struct {
	next        http.RoundTripper
	credentials *credentials
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (a *authorized) WrappedRoundTripper() http.RoundTripper { return a.next }

// RoundTrip implements http.RoundTripper.
func (a *authorized) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		shown := a.credentials.get()
		sent := request
		if shown.token != "" {
			sent = request.Clone(ctx)
			sent.Header.Set("Authorization", "Bearer "+shown.token)
		}
		response, err := a.next.RoundTrip(sent)
		if err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusUnauthorized {
			a.credentials.accept(ctx, shown)
			return response, nil
		}
		a.credentials.refuse(ctx, shown)
		if !reconnect.OnlyReads(request) || !a.await(ctx, request, shown, limit.C) {
			return response, nil
		}
		_ = response.Body.Close()
	}
}

// await waits until it is time to send a refused request again. It returns false
// when it must be answered.
func (a *authorized) await(ctx context.Context, request *http.Request, shown *identity, limit <-chan time.Time) bool {
	if reconnect.Watches(request) {
		limit = nil
	}
	pause := time.NewTimer(refusedPause)
	defer pause.Stop()
	select {
	case <-shown.replaced:
		return true
	case <-pause.C:
		return true
	case <-limit:
		return false
	case <-ctx.Done():
		return false
	}
}
