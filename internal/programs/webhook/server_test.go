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

const patience = 20 * time.Second

// serving is a webhook that runs for the time of a test.
type serving struct {
	url, status string
	issuer      *pki.Authority
	stop        func() error
}

func issue(t *testing.T, issuer *pki.Authority, commonName string) {
	t.Helper()
	if _, err := issuer.Ensure("tls", pki.Leaf{CommonName: commonName, Hosts: []string{"127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func serve(t *testing.T) *serving {
	t.Helper()
	dir := pki.Dir{Path: t.TempDir()}
	issuer, err := dir.EnsureAuthority("ca", "test")
	if err != nil {
		t.Fatal(err)
	}
	issue(t, issuer, "first")
	o := NewOptions(gates.New())
	o.BindAddress, o.SecurePort, o.CertDir = "127.0.0.1", 0, dir.Path
	o.Serving.Health = freeAddress(t)
	o.Serving.Metrics = o.Serving.Health
	server, err := New(t.Context(), o, admission.Reviewer{Rules: admission.StandardRules()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	s := &serving{url: "https://" + server.Address().String(), status: "http://" + o.Serving.Health, issuer: issuer}
	s.stop = func() error { cancel(); return <-ended }
	t.Cleanup(func() { cancel() })
	return s
}

// client trusts the issuer, and opens a new connection for each request.
func (s *serving) client(configure func(*tls.Config)) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.issuer.PEM())
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if configure != nil {
		configure(config)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: patience}
}

func request(t *testing.T, client *http.Client, method, url, body string) (int, string, *tls.ConnectionState) {
	t.Helper()
	question, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(question)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer), response.TLS
}

func TestQuestionsAreAnsweredOverTLS(t *testing.T) {
	s := serve(t)
	client := s.client(nil)
	review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: "u", Object: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"policy.karmada.io/v1alpha1","kind":"ClusterTaintPolicy","metadata":{"name":"t"},"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`),
	}}}
	review.Request.Resource.Version = "v1alpha1"
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	code, answer, _ := request(t, client, http.MethodPost, s.url+"/validate-clustertaintpolicy", string(body))
	if code != http.StatusOK || !strings.Contains(answer, `"allowed":false`) || !strings.Contains(answer, "spec.taints[0].effect") {
		t.Errorf("a policy that evicts: %d %s", code, answer)
	}
	for name, test := range map[string]struct {
		method, url, body string
		code              int
		says              string
	}{
		"a question that nobody asks":         {http.MethodPost, s.url + "/validate-work", "{", http.StatusNotFound, ""},
		"a review that cannot be decoded":     {http.MethodPost, s.url + "/mutate-work", "{", http.StatusBadRequest, "AdmissionReview"},
		"a conversion that cannot be decoded": {http.MethodPost, s.url + "/convert", "{", http.StatusBadRequest, "ConversionReview"},
		"readiness beside the questions":      {http.MethodGet, s.url + "/readyz/", "", http.StatusOK, "ok"},
		"health":                              {http.MethodGet, s.status + "/healthz", "", http.StatusOK, "ok"},
		"readiness":                           {http.MethodGet, s.status + "/readyz", "", http.StatusOK, "ok"},
		"the version as a metric":             {http.MethodGet, s.status + "/metrics", "", http.StatusOK, "karmada_build_info{"},
		"what libraries measure":              {http.MethodGet, s.status + "/metrics", "", http.StatusOK, "certwatcher_read_certificate_total "},
		"metrics on the address of health":    {http.MethodGet, s.status + "/metrics", "", http.StatusOK, `controller_runtime_webhook_requests_total{code="200",webhook="/validate-clustertaintpolicy"} 1`},
	} {
		t.Run(name, func(t *testing.T) {
			code, answer, _ := request(t, client, test.method, test.url, test.body)
			if code != test.code || !strings.Contains(answer, test.says) {
				t.Errorf("the answer is %d %s, want %d %s", code, answer, test.code, test.says)
			}
		})
	}
	if err := s.stop(); err != nil {
		t.Errorf("it ended with: %v", err)
	}
}

func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	s := serve(t)
	question, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/readyz/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }).Do(question)
	if err == nil {
		_ = response.Body.Close()
		t.Error("TLS 1.2 is spoken")
	}
}

func TestANewCertificateIsServedWithoutARestart(t *testing.T) {
	s := serve(t)
	served := func() string {
		_, _, connection := request(t, s.client(nil), http.MethodGet, s.url+"/readyz/", "")
		return connection.PeerCertificates[0].Subject.CommonName
	}
	if got := served(); got != "first" {
		t.Fatalf("the certificate is of %q", got)
	}
	issue(t, s.issuer, "second")
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return served() == "second", nil
	})
	if err != nil {
		t.Errorf("the certificate is of %q after %s", served(), patience)
	}
}

func TestAWebhookDoesNotStart(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := pki.Dir{Path: t.TempDir()}
	issuer, err := dir.EnsureAuthority("ca", "test")
	if err != nil {
		t.Fatal(err)
	}
	issue(t, issuer, "webhook")
	for name, test := range map[string]struct {
		change func(*Options)
		says   string
	}{
		"without a certificate":                   {func(o *Options) { o.CertName = "missing.crt" }, "missing.crt"},
		"with the certificate as key":             {func(o *Options) { o.KeyName = "tls.crt" }, "--cert-dir"},
		"on a port that is taken":                 {func(o *Options) { o.SecurePort = taken.Addr().(*net.TCPAddr).Port }, "--secure-port"},
		"on an address for health that is taken":  {func(o *Options) { o.Serving.Health = taken.Addr().String() }, "--health-probe-bind-address"},
		"on an address for metrics that is taken": {func(o *Options) { o.Serving.Metrics = taken.Addr().String() }, "--metrics-bind-address"},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions(gates.New())
			o.BindAddress, o.SecurePort, o.CertDir = "127.0.0.1", 0, dir.Path
			o.Serving.Health, o.Serving.Metrics = "0", ""
			test.change(o)
			if _, err := New(t.Context(), o, admission.Reviewer{}); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("starting: %v, want an error that says %q", err, test.says)
			}
		})
	}
}
