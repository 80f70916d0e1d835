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
	// dialTimeout is short, because TCP retransmits with exponential backoff during a network partition.
	// A new connection attempt notices the end of the partition earlier than a retransmission.
	dialTimeout = 3 * time.Second
	// unauthorizedRetryPeriod is the delay before a request with rejected credentials is retried
	// with the same credentials. The retry is necessary, because an API server that is starting may
	// return Unauthorized at first.
	unauthorizedRetryPeriod = 5 * time.Second
	// requestWaitTimeout is how long a request waits for the control plane. A watch waits
	// without a limit.
	requestWaitTimeout = 30 * time.Second
)

// connection contains the client configurations for the control plane. Requests continue as soon
// as the control plane is available again, and always use the current credentials.
type connection struct {
	*credentials
	// directConfig does not wait for the control plane. waitingConfig retries read requests for
	// requestWaitTimeout, and retries watches without a limit. unlimitedWaitConfig retries all
	// requests without a limit.
	directConfig, waitingConfig, unlimitedWaitConfig *rest.Config
}

// newConnection reads the kubeconfig. It sends no request.
func newConnection(path, context string, qps float32, burst int) (*connection, error) {
	loaded, config, err := newCredentials(path, context)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = qps, burst
	c := &connection{credentials: loaded}
	if hasReloadableCredentials(config) {
		if config, err = c.withCurrentCredentials(config); err != nil {
			return nil, fmt.Errorf("reading the kubeconfig %s given by --karmada-kubeconfig: %w", path, err)
		}
	}
	c.directConfig = rest.AddUserAgent(config, programs.Agent)
	c.waitingConfig = withReconnect(c.directConfig,
		reconnect.Options{Timeout: requestWaitTimeout, WatchTimeout: -1, Closed: loaded.targetChanged, RetryUnavailable: true,
			OnLost: logDisconnected(config.Host), OnRecovered: logReconnected(config.Host)})
	c.unlimitedWaitConfig = withReconnect(c.directConfig, reconnect.Options{Timeout: 365 * 24 * time.Hour, Closed: loaded.targetChanged})
	return c, nil
}

// hasReloadableCredentials reports whether the agent must reload the credentials in the
// kubeconfig, which are a client certificate or a token. All other kinds of credentials renew
// themselves or never change.
func hasReloadableCredentials(config *rest.Config) bool {
	return config.ExecProvider == nil && config.AuthProvider == nil && config.Username == ""
}

func withReconnect(config *rest.Config, o reconnect.Options) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return reconnect.NewTransport(next, o) })
	return config
}

func logDisconnected(server string) func(error) {
	return func(err error) {
		klog.Background().Info("Waiting for the control plane", "server", server, "reason", err.Error())
	}
}

func logReconnected(server string) func(time.Duration) {
	return func(after time.Duration) {
		klog.Background().Info("The control plane responds again", "server", server, "after", after.Round(time.Millisecond))
	}
}

// withCurrentCredentials returns a configuration that always uses the current credentials.
func (c *connection) withCurrentCredentials(config *rest.Config) (*rest.Config, error) {
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext)
	c.onChange = dialer.CloseAll
	transport, err := c.newTransport(config, dialer)
	if err != nil {
		return nil, err
	}
	next := rest.AnonymousClientConfig(config)
	next.TLSClientConfig, next.Dial, next.Proxy, next.Transport = rest.TLSClientConfig{}, nil, nil, transport
	next.Impersonate = config.Impersonate
	next.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &authTransport{next: next, credentials: c.credentials}
	})
	return next, nil
}

func (c *connection) newTransport(config *rest.Config, dialer *connrotation.Dialer) (*http.Transport, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	rootCAs, err := caPool(config.CAData)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	transport := &http.Transport{
		Proxy: config.Proxy, DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25,
		IdleConnTimeout: 90 * time.Second,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: rootCAs, ServerName: config.ServerName,
			InsecureSkipVerify: config.Insecure, // set in the kubeconfig
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if certificate := c.currentIdentity().certificate; certificate != nil {
					return certificate, nil
				}
				return &tls.Certificate{}, nil
			},
		},
	}
	if transport.Proxy == nil {
		transport.Proxy = http.ProxyFromEnvironment
	}
	http2Transport, err := http2.ConfigureTransports(transport)
	if err != nil {
		return nil, fmt.Errorf("configuring HTTP/2: %w", err)
	}
	http2Transport.ReadIdleTimeout, http2Transport.PingTimeout = reconnect.ReadIdleTimeout, reconnect.PingTimeout
	return transport, nil
}

// setHTTP2PingDefaults makes the HTTP/2 connections of client-go detect a dead peer early. It does
// not change values that the environment sets.
func setHTTP2PingDefaults() {
	for name, limit := range map[string]time.Duration{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": reconnect.ReadIdleTimeout,
		"HTTP2_PING_TIMEOUT_SECONDS": reconnect.PingTimeout} {
		if os.Getenv(name) == "" {
			_ = os.Setenv(name, fmt.Sprintf("%.0f", limit.Seconds()))
		}
	}
}

// authTransport adds the current token to requests. If the current credentials are rejected, it
// waits for new credentials.
type authTransport struct {
	next        http.RoundTripper
	credentials *credentials
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (a *authTransport) WrappedRoundTripper() http.RoundTripper { return a.next }

// RoundTrip implements http.RoundTripper.
func (a *authTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	timeout := time.NewTimer(requestWaitTimeout)
	defer timeout.Stop()
	for {
		used := a.credentials.currentIdentity()
		sent := request
		if used.token != "" {
			sent = request.Clone(ctx)
			sent.Header.Set("Authorization", "Bearer "+used.token)
		}
		response, err := a.next.RoundTrip(sent)
		if err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusUnauthorized {
			a.credentials.markAccepted(ctx, used)
			return response, nil
		}
		a.credentials.markRejected(ctx, used)
		if !reconnect.IsRetryable(request) || !a.awaitRetry(ctx, request, used, timeout.C) {
			return response, nil
		}
		_ = response.Body.Close()
	}
}

// awaitRetry waits until a rejected request should be sent again. It returns false if the
// rejection must be returned to the caller.
func (a *authTransport) awaitRetry(ctx context.Context, request *http.Request, used *identity, timeout <-chan time.Time) bool {
	if reconnect.IsWatch(request) {
		timeout = nil
	}
	retry := time.NewTimer(unauthorizedRetryPeriod)
	defer retry.Stop()
	select {
	case <-used.replaced:
		return true
	case <-retry.C:
		return true
	case <-timeout:
		return false
	case <-ctx.Done():
		return false
	}
}
