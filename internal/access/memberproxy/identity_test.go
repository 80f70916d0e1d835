package memberproxy_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func tokenSecret(value string) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{"token": []byte(value)}}
}

func TestImpersonatedGroups(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprint(w, req.Header.Get("Impersonate-User"), " ", req.Header["Impersonate-Group"])
	}))
	front := f.front(t)
	const robot = "system:serviceaccount:ci:robot"
	tests := map[string]struct {
		name   string
		groups []string
		want   string
	}{
		"a user": {"ann", []string{"dev", user.AllAuthenticated}, "ann [dev]"},
		"a service account": {
			robot, []string{"system:serviceaccounts", "system:serviceaccounts:ci", user.AllAuthenticated}, robot + " []",
		},
		"a service account with an additional group needs all groups": {
			robot, []string{"system:serviceaccounts", "system:serviceaccounts:ci", "dev"}, robot + " [system:serviceaccounts system:serviceaccounts:ci dev]",
		},
		"a service account that claims the groups of another namespace": {
			robot, []string{"system:serviceaccounts", "system:serviceaccounts:prod"}, robot + " [system:serviceaccounts system:serviceaccounts:prod]",
		},
		"anonymous": {user.Anonymous, []string{user.AllUnauthenticated}, "system:anonymous []"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f.caller = &user.DefaultInfo{Name: test.name, Groups: test.groups}
			if got := sendRequest(t, newRequest(t, "GET", front.URL+"/proxy/api", "")); got.body != test.want {
				t.Errorf("the member received %q, want %q", got.body, test.want)
			}
		})
	}
}

func TestWebSocketTokensAreRemoved(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprint(w, req.Header["Sec-Websocket-Protocol"])
	}))
	front := f.front(t)
	const token = "base64url.bearer.authorization.k8s.io.c2VjcmV0"
	for offered, want := range map[string]string{
		"v5.channel.k8s.io," + token:           "[v5.channel.k8s.io]",
		token + ", v5.channel.k8s.io,v4.other": "[v5.channel.k8s.io,v4.other]",
		token:                                  "[]",
		"v4.a, v4.b":                           "[v4.a, v4.b]",
	} {
		req := newRequest(t, "GET", front.URL+"/proxy/api", "")
		req.Header.Set("Sec-WebSocket-Protocol", offered)
		if got := sendRequest(t, req); got.body != want {
			t.Errorf("%s: the member received %s, want %s", offered, got.body, want)
		}
	}
}

// TestRequestHeadersAreFiltered checks requests to one member, to all members, and to the control plane
// itself. TestUpgradeHeaders checks upgrades.
func TestRequestHeadersAreFiltered(t *testing.T) {
	private := []string{
		"Cookie", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Uri",
		"X-Real-Ip", "True-Client-Ip", "X-Client-Ip", "Cf-Connecting-Ip", "X-Original-Forwarded-For", "Via", "Origin", "Referer", "From",
		"Proxy-Authorization", "X-Remote-User", "X_remote_user", "X_forwarded_for", "Impersonate-Extra-Scope", "Impersonate_user", "X-Auth-Request-Email", "Baggage", "X-Trailer", "Trailer",
	}
	forwarded := []string{
		"Accept-Encoding", "Accept-Language", "If-None-Match", "If-Modified-Since", "Range", "User-Agent", "Kubectl-Command", "Kubectl-Session",
		"Traceparent", "Tracestate", "Audit-Id", "Cache-Control",
	}
	received := http.Header{}
	receive := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		clear(received)
		maps.Copy(received, req.Header)
		maps.Copy(received, req.Trailer)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, onePod)
	})
	f, member := newFixture(t, receive)
	f.createProxy(t, &rest.Config{Host: member.URL, TLSClientConfig: rest.TLSClientConfig{CAData: caOf(member)}})
	front := f.front(t)
	for name, test := range map[string]struct {
		method, path string
		// isCopied means that the user's headers are forwarded.
		isCopied bool
	}{
		"one member":        {"POST", "/proxy/api/v1/pods", true},
		"all members":       {"GET", "/everywhere/api/v1/pods", false},
		"the control plane": {"POST", "/everywhere/version", true},
	} {
		t.Run(name, func(t *testing.T) {
			req := newRequest(t, test.method, front.URL+test.path, "")
			if test.method == "POST" {
				// A body of unknown length can have trailers.
				req.Body, req.ContentLength = io.NopCloser(strings.NewReader("{}")), -1
				req.Trailer = http.Header{"X-Trailer": {"secret"}}
			}
			for _, header := range append(private, forwarded...) {
				if header != "X-Trailer" && header != "Trailer" {
					req.Header[header] = []string{"of the user"}
				}
			}
			if got := sendRequest(t, req); got.code != http.StatusOK || received.Get("Impersonate-User") != "alice" {
				t.Fatalf("got %v", got)
			}
			for _, header := range private {
				if values, found := received[header]; found {
					t.Errorf("it receives %s: %q", header, values)
				}
			}
			for _, header := range forwarded {
				if got := received.Get(header); test.isCopied && got != "of the user" {
					t.Errorf("it receives %s: %q", header, got)
				}
			}
		})
	}
}

func TestRenewedTokenIsReadAgain(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer new" {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		if req.Header.Get("Upgrade") != "" {
			echo(w, req)
			return
		}
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(w, "%s %s", req.Header.Get("Impersonate-User"), body)
	}))
	front := f.front(t)
	f.stale = map[string]*corev1.Secret{"m1-impersonator": tokenSecret("old")}
	f.secrets["m1-impersonator"] = tokenSecret("new")

	if got := sendRequest(t, newRequest(t, "GET", front.URL+"/proxy/api", "")); got.code != http.StatusOK || got.body != "alice " {
		t.Errorf("read: got %v", got)
	}
	if _, _, resp := upgrade(t, front, "/proxy/exec"); resp.StatusCode != http.StatusSwitchingProtocols { //nolint:bodyclose // the connection is closed by upgrade
		t.Errorf("upgrade: got %s", resp.Status)
	}
	resp, err := http.DefaultClient.Do(newRequest(t, "POST", front.URL+"/proxy/api", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" || !strings.Contains(string(body), "try again") {
		t.Errorf("a write with a consumed body: got %s %q, want a request to try again", resp.Status, body)
	}
	f.stale = nil
	if got := sendRequest(t, newRequest(t, "POST", front.URL+"/proxy/api", "{}")); got.body != "alice {}" {
		t.Errorf("the retried write: got %v", got)
	}
}

func TestTokenWithNewline(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, req.Header.Get("Authorization")) }))
	f.secrets["m1-impersonator"] = tokenSecret("from a file\n")
	if got := sendRequest(t, newRequest(t, "GET", f.front(t).URL+"/proxy/api", "")); got.code != http.StatusOK || got.body != "Bearer from a file" {
		t.Errorf("got %v", got)
	}
}

func TestRemedyOfRejectedTokenDependsOnTheSyncMode(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	f.allowLoopback(t)
	front := f.front(t)
	for mode, want := range map[clusterv1alpha1.ClusterSyncMode]string{clusterv1alpha1.Push: "or join the cluster again", clusterv1alpha1.Pull: "or restart its agent"} {
		f.cluster.Spec.SyncMode = mode
		if got := sendRequest(t, newRequest(t, "GET", front.URL+"/proxy/api", "")); got.code != http.StatusServiceUnavailable || !strings.Contains(got.body, want) {
			t.Errorf("%s: got %v, want %q", mode, got, want)
		}
	}
}

func TestImpersonationErrorsAreExplained(t *testing.T) {
	const impersonator = `system:serviceaccount:karmada-cluster:karmada-impersonator`
	tests := map[string]struct {
		path string
		code int
		body string
		want clientResponse
		text string
	}{
		"a token that the member rejects": {
			path: "/api", code: 401, body: "Unauthorized", want: clientResponse{code: 503},
			text: `cannot reach cluster "m1": the member rejects the token of the control plane: replace key "token" of Secret karmada-cluster/m1-impersonator`,
		},
		"an application in the member that requires a login": {
			path: "/api/v1/namespaces/a/services/web/proxy/login", code: 401, body: "who are you?", want: clientResponse{code: 401, body: "who are you?"},
		},
		"a user that the impersonator may not impersonate": {
			path: "/api", code: 403, body: `{"kind":"Status","message":"users \"alice\" is forbidden: User \"` + impersonator + `\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope"}`,
			want: clientResponse{code: 403}, text: `cluster "m1" does not let the control plane impersonate User "alice" yet: in the control plane, bind the subject with a ClusterRoleBinding to a ClusterRole that allows clusters/proxy (by its own name: `,
		},
		"a group, in plain text": {
			path: "/api", code: 403, body: `groups "dev" is forbidden: User "` + impersonator + `" cannot impersonate resource "groups" in API group "" at the cluster scope`,
			want: clientResponse{code: 403}, text: `impersonate Group "dev" yet`,
		},
		"a user without permissions in the member": {
			path: "/api", code: 403, body: `pods is forbidden: User "alice" cannot list resource "pods"`,
			want: clientResponse{code: 403, body: `pods is forbidden: User "alice" cannot list resource "pods"`},
		},
		"a long error body is forwarded completely": {
			path: "/api", code: 403, body: strings.Repeat("no", 100_000), want: clientResponse{code: 403, body: strings.Repeat("no", 100_000)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.code)
				_, _ = io.WriteString(w, test.body)
			}))
			got := sendRequest(t, newRequest(t, "GET", f.front(t).URL+"/proxy"+test.path, ""))
			if got.code != test.want.code || test.text == "" && got.body != test.want.body || !strings.Contains(got.body, test.text) {
				t.Errorf("got %d %.300q, want %d %.300q", got.code, got.body, test.want.code, test.want.body+test.text)
			}
		})
	}
}
