package grant

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/side/sidetest"
)

// judging is an API server that answers by the token of the request.
func judging(t *testing.T, codes map[string]int) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, known := codes[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		if !known {
			code = http.StatusUnauthorized
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
	}))
	t.Cleanup(server.Close)
	// The user's own token must not be mixed up with the one that is tried.
	return &rest.Config{Host: server.URL, BearerToken: "admin"}
}

func TestWhichTokensAMemberRefuses(t *testing.T) {
	config := judging(t, map[string]int{"admin": http.StatusOK, "fine": http.StatusOK, "narrow": http.StatusForbidden, "broken": http.StatusInternalServerError})
	tests := map[string]struct {
		token       string
		want, fails bool
	}{
		"a token that it accepts":                   {token: "fine"},
		"a token of an account that may do nothing": {token: "narrow"},
		"a token that was revoked":                  {token: "revoked", want: true},
		"no token":                                  {token: " \n", want: true},
		"a member that fails says nothing about it": {token: "broken", fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Grant{Cluster: "east", Namespace: "ns", Member: sidetest.With(t, ""), Config: config}.Refuses(t.Context(), []byte(test.token))
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("refused: %t, error %v", got, err)
			}
		})
	}
}

func TestOnlyTokensThatTheMemberRefusesAreDropped(t *testing.T) {
	holding := func(account, token string) client.Object {
		secret := TokenRequest(registration.Account("ns", account))
		secret.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte(token)}
		return secret
	}
	tests := map[string]struct {
		own, shared string
		reported    Reported
		want        []string
	}{
		"both are accepted":                       {own: "fine", shared: "fine", reported: ReportAll(), want: []string{"Secret ns/karmada-east", "Secret ns/karmada-impersonator"}},
		"one was revoked":                         {own: "revoked", shared: "fine", reported: ReportAll(), want: []string{"Secret ns/karmada-impersonator"}},
		"of an account that is not reported":      {own: "revoked", shared: "revoked", reported: Reported{Impersonator: true}, want: []string{"Secret ns/karmada-east"}},
		"a token that was not issued yet remains": {shared: "fine", reported: ReportAll(), want: []string{"Secret ns/karmada-east", "Secret ns/karmada-impersonator"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			member := sidetest.With(t, "", holding("karmada-east", test.own), holding("karmada-impersonator", test.shared))
			g := Grant{Cluster: "east", Namespace: "ns", Member: member, Config: judging(t, map[string]int{"fine": http.StatusOK})}
			if err := g.DropRefused(t.Context(), test.reported); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, sidetest.Content(t, member)); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}
