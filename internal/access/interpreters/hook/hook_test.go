package hook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter/webhook"
)

// certified is a certificate that signs itself.
type certified struct {
	tls.Certificate
	bundle []byte
}

// newCertificate returns a certificate for the names that is valid until notAfter.
func newCertificate(t *testing.T, notAfter time.Time, names ...string) certified {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: notAfter.Add(-10 * 365 * 24 * time.Hour), NotAfter: notAfter,
		DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return certified{
		Certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		bundle:      pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}
}

func tlsConfig(certificate certified) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate.Certificate}}
}

// serve starts an HTTPS server with the certificate.
func serve(t *testing.T, certificate certified, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = tlsConfig(certificate)
	server.Config.ErrorLog = discardLog()
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func newCaller(t *testing.T, o Options) *Caller {
	t.Helper()
	caller := New(o)
	t.Cleanup(caller.CloseIdleConnections)
	return caller
}

func newHook(address string, bundle []byte) *webhook.Hook {
	return &webhook.Hook{
		ID: "example/workloads.example.io", Timeout: webhook.DefaultTimeout,
		Client: admissionregistrationv1.WebhookClientConfig{URL: &address, CABundle: bundle},
	}
}

// request asks for the health of an object.
func request() *configv1alpha1.ResourceInterpreterContext {
	return &configv1alpha1.ResourceInterpreterContext{Request: &configv1alpha1.ResourceInterpreterRequest{UID: "1", Operation: "InterpretHealth"}}
}

const healthy = `{"response":{"uid":"1","successful":true,"healthy":true}}`

func answerHealthy(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, healthy) }

// call returns the response to a request for the health of an object.
func call(ctx context.Context, caller *Caller, hook *webhook.Hook) (healthy bool, err error) {
	response, err := caller.Call(ctx, hook, request())
	return err == nil && *response.Response.Healthy, err
}

func TestRequest(t *testing.T) {
	certificate := newCertificate(t, time.Now().Add(time.Hour), "workloads.example-system.svc")
	port := int32(8443)
	tests := map[string]struct {
		change func(hook *webhook.Hook)
		want   string
	}{
		"a URL without a timeout": {func(*webhook.Hook) {}, "/interpret"},
		"a URL with a timeout":    {func(hook *webhook.Hook) { hook.SendsTimeout = true }, "/interpret?timeout=10s"},
		"a URL with a query":      {func(hook *webhook.Hook) { hook.SendsTimeout = true; *hook.Client.URL += "?a=b" }, "/interpret?a=b&timeout=10s"},
		"a Service": {func(hook *webhook.Hook) {
			hook.Client.URL, hook.Client.Service = nil, newReference(port, "interpret/x")
		}, "/interpret/x"},
		"a Service without a path":   {func(hook *webhook.Hook) { hook.Client.URL, hook.Client.Service = nil, newReference(port, "") }, "/"},
		"a Service with a full path": {func(hook *webhook.Hook) { hook.Client.URL, hook.Client.Service = nil, newReference(port, "/x y") }, "/x%20y"},
		"a Service with a timeout": {func(hook *webhook.Hook) {
			hook.Client.URL, hook.Client.Service = nil, newReference(port, "/x")
			hook.SendsTimeout = true
		}, "/x?timeout=10s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := serve(t, certificate, func(w http.ResponseWriter, r *http.Request) {
				var received configv1alpha1.ResourceInterpreterContext
				if err := json.NewDecoder(r.Body).Decode(&received); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(request(), &received); diff != "" {
					t.Errorf("request (-want +got):\n%s", diff)
				}
				if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.RequestURI != test.want {
					t.Errorf("request %s %s of type %s, want %s", r.Method, r.RequestURI, r.Header.Get("Content-Type"), test.want)
				}
				if _, found := r.Header["Idempotency-Key"]; found {
					t.Error("the mark for the transport is sent")
				}
				answerHealthy(w, r)
			})
			hook := newHook(server.URL+"/interpret", certificate.bundle)
			test.change(hook)
			var dialed string
			caller := newCaller(t, Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				dialed = address
				return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
			}})
			if isHealthy, err := call(t.Context(), caller, hook); err != nil || !isHealthy {
				t.Fatalf("healthy: %t, error: %v", isHealthy, err)
			}
			if hook.Client.Service != nil && dialed != "workloads.example-system.svc:8443" {
				t.Errorf("the address is %s", dialed)
			}
		})
	}
}

func TestConnectionsAreReused(t *testing.T) {
	certificate := newCertificate(t, time.Now().Add(time.Hour))
	server := serve(t, certificate, answerHealthy)
	var dials atomic.Int32
	caller := newCaller(t, Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}})
	first, second := newHook(server.URL, certificate.bundle), newHook(server.URL, certificate.bundle)
	second.ID = "example/other.example.io"
	for range 5 {
		for _, hook := range []*webhook.Hook{first, second} {
			if _, err := call(t.Context(), caller, hook); err != nil {
				t.Fatal(err)
			}
		}
	}
	if dials.Load() != 1 {
		t.Errorf("%d connections for webhooks at one address", dials.Load())
	}
	server.CloseClientConnections()
	if _, err := call(t.Context(), caller, first); err != nil {
		t.Errorf("after the server closed its connections: %v", err)
	}
}

func TestWebhooksWithDifferentAuthoritiesShareNoConnection(t *testing.T) {
	certificate := newCertificate(t, time.Now().Add(time.Hour))
	server := serve(t, certificate, answerHealthy)
	caller := newCaller(t, Options{})
	if _, err := call(t.Context(), caller, newHook(server.URL, certificate.bundle)); err != nil {
		t.Fatal(err)
	}
	other := newHook(server.URL, newCertificate(t, time.Now().Add(time.Hour)).bundle)
	if _, err := call(t.Context(), caller, other); err == nil {
		t.Error("a webhook with another CA bundle uses the connection")
	}
}

func TestServiceIsReadAgain(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	certificate := newCertificate(t, now.Add(time.Hour), "workloads.example-system.svc")
	server := serve(t, certificate, answerHealthy)
	var reads int
	isDown := false
	caller := newCaller(t, Options{
		Now: func() time.Time { return now },
		Services: func(context.Context, string, string) (*corev1.Service, error) {
			reads++
			return newService(corev1.ServiceTypeExternalName, "", "web.example.io"), nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			if isDown {
				return nil, &net.OpError{Op: "dial", Err: io.ErrClosedPipe}
			}
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
	hook := newHook("", certificate.bundle)
	hook.Client.URL, hook.Client.Service = nil, newReference(443, "/")
	expect := func(want int, when string) {
		t.Helper()
		_, err := call(t.Context(), caller, hook)
		if isDown == (err == nil) {
			t.Errorf("%s: error %v", when, err)
		}
		if reads != want {
			t.Errorf("%s: %d reads of the Service, want %d", when, reads, want)
		}
	}
	expect(1, "first call")
	now = now.Add(maxAge - 1)
	expect(1, "within 10 seconds")
	now = now.Add(1)
	expect(2, "after 10 seconds")
	caller.CloseIdleConnections()
	isDown = true
	expect(2, "connection that fails")
	isDown = false
	expect(3, "after a connection that failed")
}

func TestProxiesAreNotUsedForServices(t *testing.T) {
	if proxyFor("workloads.example-system.svc") != nil || proxyFor("") == nil {
		t.Error("a Service is called through a proxy, or a URL is not")
	}
}
