package grant

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
	"karmada.io/karmada/internal/registration/side/sidetest"
)

func TestTheTokenIsThatOfExactlyThisAccount(t *testing.T) {
	account := registration.Account("ns", "karmada-east")
	account.UID = "now"
	holding := func(token, of string) *corev1.Secret {
		secret := TokenRequest(account)
		secret.Annotations[corev1.ServiceAccountUIDKey] = of
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
		"it is there":    {[]watch.Event{{Type: watch.Added, Object: holding("mine", "now")}}, "mine"},
		"it comes later": {[]watch.Event{{Type: watch.Added, Object: holding("", "now")}, {Type: watch.Modified, Object: holding("mine", "now")}}, "mine"},
		"an account of the same name has left it": {[]watch.Event{{Type: watch.Added, Object: holding("stale", "before")}, {Type: watch.Deleted, Object: holding("stale", "before")}}, ""},
		"and it is issued anew for this one":      {[]watch.Event{{Type: watch.Added, Object: holding("stale", "before")}, {Type: watch.Modified, Object: holding("mine", "now")}}, "mine"},
		"it goes before anybody could use it":     {[]watch.Event{{Type: watch.Deleted, Object: holding("mine", "now")}}, ""},
		"the watch ends":                          {nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			member := sidetest.With(t, "")
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
			secret, err := awaitToken(t.Context(), member, TokenRequest(account), account.UID)
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

func TestWhichCAIsStored(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	another, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "another"}, key)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		// another tells that the kubeconfig trusts another CA than the member's.
		another bool
		code    int
		stored  bool
	}{
		"that of the kubeconfig, where it will do":          {code: http.StatusOK, stored: true},
		"that beside the token, where it does not":          {another: true, code: http.StatusOK, stored: true},
		"none, and none is tried, where the token does not": {code: http.StatusTeapot},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			member := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.WriteHeader(test.code)
			}))
			member.Config.ErrorLog = log.New(io.Discard, "", 0)
			member.StartTLS()
			t.Cleanup(member.Close)
			its, first := pem(t, member.Certificate()), pem(t, member.Certificate())
			if test.another {
				first = pem(t, another)
			}
			g := Grant{Cluster: "east", Namespace: "ns", Member: sidetest.With(t, ""), Config: &rest.Config{Host: member.URL}}
			found, err := g.verify(t.Context(), []byte("token"), first, its)
			if (err == nil) != test.stored || test.stored && !bytes.Equal(found, its) {
				t.Errorf("error %v, CA %q", err, found)
			}
			if got := asked.Load(); got != 1 {
				t.Errorf("the member was asked %d times", got)
			}
		})
	}
}

func pem(t *testing.T, certificate *x509.Certificate) []byte {
	t.Helper()
	encoded, err := cert.EncodeCertificates(certificate)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
