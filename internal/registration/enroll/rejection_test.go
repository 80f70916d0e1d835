package enroll

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient/clusterclienttest"
)

// newTokenServer starts an API server whose response has a status code that depends on the token
// of the request. Requests with unknown tokens get Unauthorized.
func newTokenServer(t *testing.T, codes map[string]int) *rest.Config {
	t.Helper()
	config := clusterclienttest.StartServer(t, func(w http.ResponseWriter, r *http.Request) {
		code, known := codes[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		if !known {
			code = http.StatusUnauthorized
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
	})
	// BearerToken is the user's token. Requests must use the tested token instead.
	config.BearerToken = "admin"
	return config
}

func TestRejectsToken(t *testing.T) {
	codes := map[string]int{"admin": http.StatusOK, "fine": http.StatusOK, "narrow": http.StatusForbidden, "broken": http.StatusInternalServerError}
	tests := map[string]struct {
		token       string
		want, fails bool
	}{
		"an accepted token":                         {token: "fine"},
		"a token of an account without permissions": {token: "narrow"},
		"a revoked token":                           {token: "revoked", want: true},
		"an empty token":                            {token: " \n", want: true},
		"an internal error of the member":           {token: "broken", fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, err := Grant{Cluster: "east", Namespace: "ns", Member: clusterclienttest.NewClient(t, ""), Config: newTokenServer(t, codes)}.RejectsToken(t.Context(), []byte(test.token))
				if got != test.want || (err != nil) != test.fails {
					t.Errorf("rejected: %t, error %v", got, err)
				}
			})
		})
	}
}

func TestDeleteRejectedTokens(t *testing.T) {
	newSecret := func(account, token string) client.Object {
		secret := NewTokenSecret(registration.NewServiceAccount("ns", account))
		secret.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte(token)}
		return secret
	}
	tests := map[string]struct {
		own, impersonator string
		reported          ReportedAccounts
		want              []string
	}{
		"both are accepted":              {own: "fine", impersonator: "fine", reported: AllAccounts(), want: []string{"Secret ns/karmada-east", "Secret ns/karmada-impersonator"}},
		"one was revoked":                {own: "revoked", impersonator: "fine", reported: AllAccounts(), want: []string{"Secret ns/karmada-impersonator"}},
		"the account is not reported":    {own: "revoked", impersonator: "revoked", reported: ReportedAccounts{Impersonator: true}, want: []string{"Secret ns/karmada-east"}},
		"a Secret without a token stays": {impersonator: "fine", reported: AllAccounts(), want: []string{"Secret ns/karmada-east", "Secret ns/karmada-impersonator"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				member := clusterclienttest.NewClient(t, "", newSecret("karmada-east", test.own), newSecret("karmada-impersonator", test.impersonator))
				g := Grant{Cluster: "east", Namespace: "ns", Member: member, Config: newTokenServer(t, map[string]int{"fine": http.StatusOK})}
				if err := g.DeleteRejectedTokens(t.Context(), test.reported); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, clusterclienttest.ListContent(t, member)); diff != "" {
					t.Errorf("content (-want +got):\n%s", diff)
				}
			})
		})
	}
}
