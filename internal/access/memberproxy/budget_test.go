package memberproxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karmada.io/karmada/internal/access/memberproxy"
)

// getPath sends a request for the given path in the fixture's member.
func getPath(t *testing.T, f http.Handler, path string) *http.Response {
	t.Helper()
	recorder := httptest.NewRecorder()
	f.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/proxy"+path, http.NoBody))
	return recorder.Result()
}

func TestBudgets(t *testing.T) {
	for name, tc := range map[string]struct {
		budgets memberproxy.Budgets
		busy    string
		path    string
		want    string
	}{
		"requests to one member": {memberproxy.Budgets{Requests: 1, AllRequests: 9, LongRunning: 9, AllLongRunning: 9}, "/api/v1/pods", "/api/v1/nodes",
			`1 requests are in progress for cluster "m1"`},
		"requests to all members": {memberproxy.Budgets{Requests: 9, AllRequests: 1, LongRunning: 9, AllLongRunning: 9}, "/api/v1/pods", "/api/v1/nodes",
			"1 requests of the budget for requests are in progress for all clusters together"},
		"watches of one member": {memberproxy.Budgets{Requests: 9, AllRequests: 9, LongRunning: 1, AllLongRunning: 9}, "/api/v1/pods?watch=true", "/api/v1/nodes?watch=true",
			`1 watches and logs are in progress for cluster "m1"`},
		"watches do not use the budget of requests": {memberproxy.Budgets{Requests: 1, AllRequests: 1, LongRunning: 1, AllLongRunning: 1}, "/api/v1/pods?watch=true", "/api/v1/nodes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			started, end := make(chan struct{}), make(chan struct{})
			f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/pods") {
					close(started)
					<-end
				}
				w.WriteHeader(http.StatusOK)
			}))
			f.budgets = tc.budgets
			f.createProxy(t, nil)
			done := make(chan struct{})
			go func() {
				defer close(done)
				f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/proxy"+tc.busy, http.NoBody))
			}()
			<-started
			resp := getPath(t, f, tc.path)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" && resp.StatusCode != http.StatusOK || tc.want != "" &&
				(resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(body), tc.want)) {
				t.Errorf("response %d: %s", resp.StatusCode, body)
			}
			close(end)
			<-done
			if tc.want != "" {
				retried := getPath(t, f, tc.path)
				defer retried.Body.Close()
				if retried.StatusCode != http.StatusOK {
					t.Errorf("afterwards: %d, the slot was not released", retried.StatusCode)
				}
			}
		})
	}
}

func TestHeadersOfMembersAreFiltered(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{
			"Set-Cookie": "session=stolen", "WWW-Authenticate": "Basic", "Alt-Svc": `h2="evil:443"`, "Clear-Site-Data": `"*"`,
			"Access-Control-Allow-Origin": "*", "Audit-Id": "kept",
		} {
			w.Header().Set(name, value)
		}
		for range 100 {
			w.Header().Add("Warning", `299 - "`+strings.Repeat("w", 2000)+`"`)
		}
		w.WriteHeader(http.StatusOK)
	}))
	resp := getPath(t, f, "/api/v1/pods")
	defer resp.Body.Close()
	kept := map[string]bool{}
	for name := range resp.Header {
		kept[name] = true
	}
	if diff := cmp.Diff(map[string]bool{"Audit-Id": true, "Warning": true, "Date": true, "Content-Length": true}, kept); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	warnings := resp.Header["Warning"]
	if len(warnings) != 17 || !strings.Contains(warnings[16], "more than 16 warnings") || len(warnings[0]) > 600 {
		t.Errorf("%d warnings, the first of %d bytes, the last is %q", len(warnings), len(warnings[0]), warnings[len(warnings)-1])
	}
}

func TestRedirectsStayInTheMember(t *testing.T) {
	for name, tc := range map[string]struct {
		to   string
		code int
		want string
	}{
		"another host":                {"https://evil.example/api", http.StatusBadGateway, ""},
		"another host without scheme": {"//evil.example/api", http.StatusBadGateway, ""},
		"a path without host is a path of the member": {"/api/v1/secrets?limit=1", http.StatusTemporaryRedirect,
			"/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api/v1/secrets?limit=1"},
		"dots are removed": {"/../../../api", http.StatusTemporaryRedirect, "/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api"},
		"escaped dots":     {"/%2e%2e/%2e%2e/api", http.StatusBadGateway, ""},
		"a relative path":  {"other/", http.StatusTemporaryRedirect, "/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api/v1/other/"},
		"no URL":           {"https://[", http.StatusBadGateway, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", tc.to)
				w.WriteHeader(http.StatusTemporaryRedirect)
			}))
			resp := getPath(t, f, "/api/v1/pods")
			defer resp.Body.Close()
			if diff := cmp.Diff([]any{tc.code, tc.want}, []any{resp.StatusCode, resp.Header.Get("Location")}); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}
