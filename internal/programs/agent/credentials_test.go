package agent

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// newCertificateKubeconfig returns a kubeconfig with a client certificate. from is the time at
// which the certificate becomes valid.
func newCertificateKubeconfig(t *testing.T, from time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "east", NotBefore: from}, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := cert.EncodeCertificates(signed)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["karmada"] = &clientcmdapi.Cluster{Server: "https://karmada"}
	config.AuthInfos["east"] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: keyPEM}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "karmada", AuthInfo: "east"}
	config.CurrentContext = "it"
	encoded, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestOlderCertificateReplacesOnlyARejectedOne(t *testing.T) {
	now := time.Now()
	tests := map[string]struct {
		from           time.Time
		rejected, want bool
	}{
		"a newer certificate":                                   {from: now.Add(time.Hour), want: true},
		"another certificate of the same time":                  {from: now, want: true},
		"an older certificate, as in an outdated file":          {from: now.Add(-time.Hour)},
		"an older certificate when the current one is rejected": {from: now.Add(-time.Hour), rejected: true, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, _, err := newCredentials(writeFile(t, newCertificateKubeconfig(t, now)), "")
			if err != nil {
				t.Fatal(err)
			}
			before := c.currentIdentity()
			if test.rejected {
				c.markRejected(t.Context(), before)
			}
			if err := c.update(t.Context(), newCertificateKubeconfig(t, test.from), "a test"); err != nil {
				t.Fatal(err)
			}
			if got := c.currentIdentity() != before; got != test.want {
				t.Errorf("replaced: %t, want %t", got, test.want)
			}
		})
	}
}

// rejectingTransport rejects all credentials and counts the requests.
type rejectingTransport struct{ requests int }

func (r *rejectingTransport) RoundTrip(*http.Request) (*http.Response, error) {
	r.requests++
	return &http.Response{StatusCode: http.StatusUnauthorized, Body: io.NopCloser(bytes.NewReader(nil))}, nil
}

func TestRejectedRequestWaitsForCredentials(t *testing.T) {
	const day = 24 * time.Hour
	tests := map[string]struct {
		method, query string
		body          io.Reader
		after         time.Duration
		retried       bool
	}{
		"a read waits up to the limit":          {method: http.MethodGet, after: requestWaitTimeout, retried: true},
		"a create is not retried":               {method: http.MethodPost, body: bytes.NewReader([]byte("{}"))},
		"a delete is not retried":               {method: http.MethodDelete},
		"a patch without a body is not retried": {method: http.MethodPatch},
		"a watch waits until its context ends":  {method: http.MethodGet, query: "?watch=true", after: day, retried: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), day)
				defer cancel()
				request, err := http.NewRequestWithContext(ctx, test.method, "https://karmada/api/v1/pods"+test.query, test.body)
				if err != nil {
					t.Fatal(err)
				}
				karmada := &rejectingTransport{}
				transport := &authTransport{next: karmada, credentials: &credentials{current: &identity{token: "t", replaced: make(chan struct{})}, reloadRequests: make(chan struct{}, 1)}}
				started := time.Now()
				response, err := transport.RoundTrip(request)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				if took := time.Since(started); response.StatusCode != http.StatusUnauthorized || took != test.after {
					t.Errorf("status %d after %s, want 401 after %s", response.StatusCode, took, test.after)
				}
				if retried := karmada.requests > 1; retried != test.retried {
					t.Errorf("sent %d requests", karmada.requests)
				}
			})
		})
	}
}

func TestRejectedCredentialsAreNotAlternatedWithoutDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const maxRejections = 100
		c, _, err := newCredentials(writeFile(t, newCertificateKubeconfig(t, time.Now())), "")
		if err != nil {
			t.Fatal(err)
		}
		other := newCertificateKubeconfig(t, time.Now().Add(time.Hour))
		c.readSecret = func(context.Context) ([]byte, error) { return other, nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go c.watchKubeconfig(ctx)
		rejections := 0
		for ctx.Err() == nil && rejections < maxRejections {
			shown := c.currentIdentity()
			c.markRejected(ctx, shown)
			rejections++
			select {
			case <-shown.replaced:
			case <-ctx.Done():
			}
		}
		if rejections == maxRejections {
			t.Errorf("the control plane rejected credentials %d times within %s", maxRejections, time.Minute)
		}
		cancel()
		synctest.Wait()
	})
}
