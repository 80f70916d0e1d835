package enroll

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient/clusterclienttest"
)

func TestAwaitToken(t *testing.T) {
	account := registration.NewServiceAccount("ns", "karmada-east")
	account.UID = "now"
	newSecret := func(token, accountUID string) *corev1.Secret {
		secret := NewTokenSecret(account)
		secret.Annotations[corev1.ServiceAccountUIDKey] = accountUID
		secret.Data = map[string][]byte{}
		if token != "" {
			secret.Data[corev1.ServiceAccountTokenKey] = []byte(token)
		}
		return secret
	}
	tests := map[string]struct {
		events []watch.Event
		want   string
	}{
		"the token exists":                            {[]watch.Event{{Type: watch.Added, Object: newSecret("mine", "now")}}, "mine"},
		"the token is issued later":                   {[]watch.Event{{Type: watch.Added, Object: newSecret("", "now")}, {Type: watch.Modified, Object: newSecret("mine", "now")}}, "mine"},
		"the Secret of an earlier account is deleted": {[]watch.Event{{Type: watch.Added, Object: newSecret("stale", "before")}, {Type: watch.Deleted, Object: newSecret("stale", "before")}}, ""},
		"the token of an earlier account is replaced": {[]watch.Event{{Type: watch.Added, Object: newSecret("stale", "before")}, {Type: watch.Modified, Object: newSecret("mine", "now")}}, "mine"},
		"the Secret is deleted":                       {[]watch.Event{{Type: watch.Deleted, Object: newSecret("mine", "now")}}, ""},
		"the watch ends":                              {nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			member := clusterclienttest.NewClient(t, "")
			member.API = interceptor.NewClient(member.API, interceptor.Funcs{
				Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
					events := watch.NewFakeWithChanSize(len(test.events), false)
					for _, event := range test.events {
						events.Action(event.Type, event.Object)
					}
					events.Stop()
					return events, nil
				},
			})
			secret, err := awaitToken(t.Context(), member, NewTokenSecret(account), account.UID)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if secret != nil {
				got = string(secret.Data[corev1.ServiceAccountTokenKey])
			}
			if got != test.want {
				t.Errorf("token %q, want %q", got, test.want)
			}
		})
	}
}

func TestVerifyTokenSelectsCA(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	otherCA, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "other"}, key)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		// hasOtherCA is true if the kubeconfig trusts a CA that did not sign the member's
		// certificate.
		hasOtherCA bool
		code       int
		stored     bool
	}{
		"the CA of the kubeconfig if it verifies": {code: http.StatusOK, stored: true},
		"the CA of the token Secret otherwise":    {hasOtherCA: true, code: http.StatusOK, stored: true},
		"no CA if the token is rejected":          {code: http.StatusTeapot},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			member := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.WriteHeader(test.code)
			}))
			member.Config.ErrorLog = log.New(io.Discard, "", 0)
			member.StartTLS()
			t.Cleanup(member.Close)
			memberCA, firstCA := encodePEM(t, member.Certificate()), encodePEM(t, member.Certificate())
			if test.hasOtherCA {
				firstCA = encodePEM(t, otherCA)
			}
			g := Grant{Cluster: "east", Namespace: "ns", Member: clusterclienttest.NewClient(t, ""), Config: &rest.Config{Host: member.URL}}
			found, err := g.verifyToken(t.Context(), []byte("token"), firstCA, memberCA)
			if (err == nil) != test.stored || test.stored && !bytes.Equal(found, memberCA) {
				t.Errorf("error %v, CA %q", err, found)
			}
			if got := requests.Load(); got != 1 {
				t.Errorf("the member received %d requests", got)
			}
		})
	}
}

func encodePEM(t *testing.T, certificate *x509.Certificate) []byte {
	t.Helper()
	encoded, err := cert.EncodeCertificates(certificate)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
