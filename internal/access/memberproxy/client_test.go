package memberproxy_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"karmada.io/karmada/internal/access/memberproxy"
)

// TestClient checks requests that this process itself creates.
func TestClient(t *testing.T) {
	var got *http.Request
	var body string
	release := make(chan struct{})
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		text, _ := io.ReadAll(req.Body)
		got, body = req, string(text)
		if req.URL.Query().Get("watch") != "" {
			select {
			case <-release:
			case <-req.Context().Done():
			}
		}
		_, _ = w.Write([]byte("answer"))
	}))
	f.budgets = memberproxy.Budgets{Requests: 1, AllRequests: 1, LongRunning: 1, AllLongRunning: 1}
	f.createProxy(t, nil)
	for range 3 {
		response, err := f.proxy.Do(t.Context(), "m1", f.caller, memberproxy.Request{
			Method: http.MethodPost, Path: "/api/v1/pods", Query: url.Values{"limit": {"5"}}, Body: []byte("text"),
			Header: http.Header{"Authorization": {"Bearer stolen"}, "Accept": {"application/json"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if err != nil || string(text) != "answer" {
			t.Errorf("got %q, %v", text, err)
		}
		// The budget's slot is released only once, even if the body is closed several times.
		_, _ = response.Body.Close(), response.Body.Close()
	}
	if got.Method != http.MethodPost || got.URL.Path != "/api/v1/pods" || got.URL.RawQuery != "limit=5" || body != "text" {
		t.Errorf("the member gets %s %s with %q", got.Method, got.URL, body)
	}
	if user, token := got.Header.Get("Impersonate-User"), got.Header.Get("Authorization"); user != "alice" || token != "Bearer impersonator-token" {
		t.Errorf("the member gets user %q with %q", user, token)
	}

	_, err := f.proxy.Do(t.Context(), "m1", f.caller, memberproxy.Request{Method: http.MethodGet, Path: "/api/v1/pods", Query: url.Values{"watch": {"1"}}, Idle: 20 * time.Millisecond}) //nolint:bodyclose // there is no response
	if err == nil || !strings.Contains(err.Error(), `cluster "m1"`) {
		t.Errorf("a watch that the member does not accept: %v", err)
	}
	close(release)
}

// TestOwnIdentity checks requests with the control plane's own identity.
func TestOwnIdentity(t *testing.T) {
	var got http.Header
	f, _ := newFixture(t, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { got = req.Header }))
	f.secrets["m1"].Data["token"] = []byte("own-token")
	request := memberproxy.Request{Method: http.MethodGet, Path: "/api", Header: http.Header{"Impersonate-User": {"root"}}}
	response, err := memberproxy.Own{Proxy: f.proxy}.Do(t.Context(), "m1", f.caller, request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if got.Get("Authorization") != "Bearer own-token" || got.Get("Impersonate-User") != "" {
		t.Errorf("the member gets %v", got)
	}
	if _, err := f.proxy.Do(t.Context(), "m1", nil, request); err == nil { //nolint:bodyclose // there is no response
		t.Error("a request without a caller is sent")
	}
	delete(f.secrets["m1"].Data, "token")
	want := `secret karmada-cluster/m1 has no key "token": join the cluster again`
	if _, err := (memberproxy.Own{Proxy: f.proxy}).Do(t.Context(), "m1", nil, request); err == nil || !strings.Contains(err.Error(), want) { //nolint:bodyclose // there is no response
		t.Errorf("without a token: %v", err)
	}
}
