package reconnect

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// cutConn is a connection that can be cut. After a cut, written data is lost and no data arrives.
type cutConn struct {
	net.Conn
	cut *atomic.Bool
}

func (c cutConn) Write(b []byte) (int, error) {
	if c.cut.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func TestCutConnectionIsReplaced(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	cut := &atomic.Bool{}
	dials := &atomic.Int32{}
	base := utilnet.SetTransportDefaults(&http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if dials.Add(1) > 1 {
				return dialled, err
			}
			return cutConn{dialled, cut}, err
		},
	})
	t.Cleanup(base.CloseIdleConnections)
	transport := NewTransport(setTransportPingTimeouts(&wrappingTransport{base}, 100*time.Millisecond, 100*time.Millisecond), Options{RetryInterval: time.Millisecond})
	get := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || response.ProtoMajor != 2 {
			t.Fatalf("HTTP/%d and error %v, want HTTP/2", response.ProtoMajor, err)
		}
	}
	get()
	cut.Store(true)
	get()
	if dials.Load() != 2 {
		t.Errorf("%d connections, want 2", dials.Load())
	}
}

// wrappingTransport wraps a transport and returns it.
type wrappingTransport struct{ next http.RoundTripper }

func (w *wrappingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	return w.next.RoundTrip(request)
}

func (w *wrappingTransport) WrappedRoundTripper() http.RoundTripper { return w.next }

func TestSetPingTimeouts(t *testing.T) {
	tests := map[string]struct {
		config   *rest.Config
		variable string
		want     bool
	}{
		"the transport of one configuration": {config: &rest.Config{Host: "https://example.com", TLSClientConfig: rest.TLSClientConfig{ServerName: t.Name()}}, want: true},
		"not the default transport":          {config: &rest.Config{Host: "http://example.com"}},
		"not with an environment variable":   {config: &rest.Config{Host: "https://example.com", TLSClientConfig: rest.TLSClientConfig{ServerName: t.Name() + "2"}}, variable: "30"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", test.variable)
			SetPingTimeouts(test.config)
			made, err := rest.TransportFor(test.config)
			if err != nil {
				t.Fatal(err)
			}
			for {
				under, ok := made.(utilnet.RoundTripperWrapper)
				if !ok {
					break
				}
				made = under.WrappedRoundTripper()
			}
			base, ok := made.(*http.Transport)
			if !ok {
				t.Fatalf("the transport is a %T", made)
			}
			if got := base.HTTP2 != nil; got != test.want {
				t.Errorf("changed: %t, want %t", got, test.want)
			}
		})
	}
}
