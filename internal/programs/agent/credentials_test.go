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

// issued is a kubeconfig whose client certificate is valid from a time on.
func issued(t *testing.T, from time.Time) []byte {
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

func TestAnOlderCertificateIsTakenOnlyInNeed(t *testing.T) {
	now := time.Now()
	tests := map[string]struct {
		from          time.Time
		refused, want bool
	}{
		"the next one":                              {from: now.Add(time.Hour), want: true},
		"another one of the same time":              {from: now, want: true},
		"the one before, as a file may hold it yet": {from: now.Add(-time.Hour)},
		"the one before, when this one is refused":  {from: now.Add(-time.Hour), refused: true, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, _, err := newCredentials(fileWith(t, issued(t, now)), "")
			if err != nil {
				t.Fatal(err)
			}
			before := c.get()
			if test.refused {
				c.refuse(t.Context(), before)
			}
			if err := c.take(t.Context(), issued(t, test.from), "somewhere"); err != nil {
				t.Fatal(err)
			}
			if got := c.get() != before; got != test.want {
				t.Errorf("taken: %t, want %t", got, test.want)
			}
		})
	}
}

// refusing refuses all credentials, and counts what it is asked.
type refusing struct{ asked int }

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	r.asked++
	return &http.Response{StatusCode: http.StatusUnauthorized, Body: io.NopCloser(bytes.NewReader(nil))}, nil
}

func TestHowLongARequestWaitsForOtherCredentials(t *testing.T) {
	const day = 24 * time.Hour
	tests := map[string]struct {
		method, query string
		body          io.Reader
		after         time.Duration
		again         bool
	}{
		"what reads, for as long as the agent is patient":  {method: http.MethodGet, after: patience, again: true},
		"what writes is not sent twice":                    {method: http.MethodPost, body: bytes.NewReader([]byte("{}"))},
		"what deletes is not, either":                      {method: http.MethodDelete},
		"what changes something without a body is neither": {method: http.MethodPatch},
		"a watch, until its caller gives it up":            {method: http.MethodGet, query: "?watch=true", after: day, again: true},
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
				karmada := &refusing{}
				through := &authorized{next: karmada, credentials: &credentials{current: &identity{token: "t", replaced: make(chan struct{})}, wake: make(chan struct{}, 1)}}
				began := time.Now()
				response, err := through.RoundTrip(request)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				if took := time.Since(began); response.StatusCode != http.StatusUnauthorized || took != test.after {
					t.Errorf("answered %d after %s, want 401 after %s", response.StatusCode, took, test.after)
				}
				if again := karmada.asked > 1; again != test.again {
					t.Errorf("sent %d times", karmada.asked)
				}
			})
		})
	}
}

func TestCredentialsThatAreAllRefusedAreNotTriedInTurnAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tries = 100
		c, _, err := newCredentials(fileWith(t, issued(t, time.Now())), "")
		if err != nil {
			t.Fatal(err)
		}
		other := issued(t, time.Now().Add(time.Hour))
		c.secret = func(context.Context) ([]byte, error) { return other, nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go c.watch(ctx)
		tried := 0
		for ctx.Err() == nil && tried < tries {
			shown := c.get()
			c.refuse(ctx, shown)
			tried++
			select {
			case <-shown.replaced:
			case <-ctx.Done():
			}
		}
		if tried == tries {
			t.Errorf("the control plane refused %d times within %s", tries, time.Minute)
		}
		cancel()
		synctest.Wait()
	})
}
