package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/admission"
)

const testTimeout = 20 * time.Second

// runningServer is a webhook server that runs during a test.
type runningServer struct {
	url, status string
	issuer      *pki.Authority
	stop        func() error
}

func issueCertificate(t *testing.T, issuer *pki.Authority, commonName string) {
	t.Helper()
	if _, err := issuer.EnsureLeaf("tls", pki.Leaf{CommonName: commonName, Hosts: []string{"127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
}

// freeAddress returns an address on which no server listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func startServer(t *testing.T) *runningServer {
	t.Helper()
	dir := pki.Dir{Path: t.TempDir()}
	issuer, err := dir.EnsureAuthority("ca", "test")
	if err != nil {
		t.Fatal(err)
	}
	issueCertificate(t, issuer, "first")
	o := NewOptions(gates.New())
	o.BindAddress, o.SecurePort, o.CertDir = "127.0.0.1", 0, dir.Path
	o.Serving.Health = freeAddress(t)
	o.Serving.Metrics = o.Serving.Health
	server, err := NewServer(t.Context(), o, admission.Reviewer{Rules: admission.DefaultRules()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	s := &runningServer{url: "https://" + server.Address().String(), status: "http://" + o.Serving.Health, issuer: issuer}
	s.stop = func() error { cancel(); return <-ended }
	t.Cleanup(func() { cancel() })
	return s
}

// client returns a client that trusts the issuer and opens a new connection for each request.
func (r *runningServer) client(configure func(*tls.Config)) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.issuer.PEM())
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if configure != nil {
		configure(config)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: testTimeout}
}

func request(t *testing.T, client *http.Client, method, url, body string) (int, string, *tls.ConnectionState) {
	t.Helper()
	httpRequest, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(httpRequest)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	responseBody, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(responseBody), response.TLS
}

func TestWebhookOverTLS(t *testing.T) {
	s := startServer(t)
	client := s.client(nil)
	review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: "u", Object: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"policy.karmada.io/v1alpha1","kind":"ClusterTaintPolicy","metadata":{"name":"t"},"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`),
	}}}
	review.Request.Resource.Version = "v1alpha1"
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	code, response, _ := request(t, client, http.MethodPost, s.url+"/validate-clustertaintpolicy", string(body))
	if code != http.StatusOK || !strings.Contains(response, `"allowed":false`) || !strings.Contains(response, "spec.taints[0].effect") {
		t.Errorf("policy with a NoExecute taint: %d %s", code, response)
	}
	for name, test := range map[string]struct {
		method, url, body string
		code              int
		want              string
	}{
		"an unknown path":                     {http.MethodPost, s.url + "/validate-work", "{", http.StatusNotFound, ""},
		"a review that cannot be decoded":     {http.MethodPost, s.url + "/mutate-work", "{", http.StatusBadRequest, "AdmissionReview"},
		"a conversion that cannot be decoded": {http.MethodPost, s.url + "/convert", "{", http.StatusBadRequest, "ConversionReview"},
		"readiness on the webhook port":       {http.MethodGet, s.url + "/readyz/", "", http.StatusOK, "ok"},
		"health":                              {http.MethodGet, s.status + "/healthz", "", http.StatusOK, "ok"},
		"readiness":                           {http.MethodGet, s.status + "/readyz", "", http.StatusOK, "ok"},
		"the version as a metric":             {http.MethodGet, s.status + "/metrics", "", http.StatusOK, "karmada_build_info{"},
		"metrics of libraries":                {http.MethodGet, s.status + "/metrics", "", http.StatusOK, "certwatcher_read_certificate_total "},
		"metrics on the address of health":    {http.MethodGet, s.status + "/metrics", "", http.StatusOK, `controller_runtime_webhook_requests_total{code="200",webhook="/validate-clustertaintpolicy"} 1`},
	} {
		t.Run(name, func(t *testing.T) {
			code, response, _ := request(t, client, test.method, test.url, test.body)
			if code != test.code || !strings.Contains(response, test.want) {
				t.Errorf("response %d %s, want %d %s", code, response, test.code, test.want)
			}
		})
	}
	if err := s.stop(); err != nil {
		t.Errorf("the server ended with: %v", err)
	}
}

func TestOldTLSVersionsAreRejected(t *testing.T) {
	s := startServer(t)
	httpRequest, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/readyz/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }).Do(httpRequest)
	if err == nil {
		_ = response.Body.Close()
		t.Error("TLS 1.2 is accepted")
	}
}

func TestCertificateReload(t *testing.T) {
	s := startServer(t)
	served := func() string {
		_, _, connection := request(t, s.client(nil), http.MethodGet, s.url+"/readyz/", "")
		return connection.PeerCertificates[0].Subject.CommonName
	}
	if got := served(); got != "first" {
		t.Fatalf("the certificate has the common name %q", got)
	}
	issueCertificate(t, s.issuer, "second")
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, testTimeout, true, func(context.Context) (bool, error) {
		return served() == "second", nil
	})
	if err != nil {
		t.Errorf("the certificate has the common name %q after %s", served(), testTimeout)
	}
}

func TestStartErrors(t *testing.T) {
	occupied, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer occupied.Close()
	dir := pki.Dir{Path: t.TempDir()}
	issuer, err := dir.EnsureAuthority("ca", "test")
	if err != nil {
		t.Fatal(err)
	}
	issueCertificate(t, issuer, "webhook")
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"without a certificate":               {func(o *Options) { o.CertName = "missing.crt" }, "missing.crt"},
		"with the certificate as key":         {func(o *Options) { o.KeyName = "tls.crt" }, "--cert-dir"},
		"on a port that is in use":            {func(o *Options) { o.SecurePort = occupied.Addr().(*net.TCPAddr).Port }, "--secure-port"},
		"on a health address that is in use":  {func(o *Options) { o.Serving.Health = occupied.Addr().String() }, "--health-probe-bind-address"},
		"on a metrics address that is in use": {func(o *Options) { o.Serving.Metrics = occupied.Addr().String() }, "--metrics-bind-address"},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions(gates.New())
			o.BindAddress, o.SecurePort, o.CertDir = "127.0.0.1", 0, dir.Path
			o.Serving.Health, o.Serving.Metrics = "0", ""
			test.change(o)
			if _, err := NewServer(t.Context(), o, admission.Reviewer{}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("starting: %v, want an error that contains %q", err, test.want)
			}
		})
	}
}
