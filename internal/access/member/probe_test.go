package member

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProbe(t *testing.T) {
	answers := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	comeAgain := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	cutShort := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "2")
		w.WriteHeader(http.StatusOK)
	}
	tests := map[string]struct {
		ready, health http.HandlerFunc
		limit         time.Duration
		want          Health
	}{
		"healthy":                                  {ready: answers(200), want: Health{Reachable: true, Healthy: true}},
		"healthy at /healthz only":                 {ready: answers(404), health: answers(200), want: Health{Reachable: true, Healthy: true}},
		"unhealthy at /healthz only":               {ready: answers(404), health: answers(500), want: Health{Reachable: true, Cause: "its health endpoint responded with 500 Internal Server Error"}},
		"unhealthy":                                {ready: answers(500), health: answers(200), want: Health{Reachable: true, Cause: "its health endpoint responded with 500 Internal Server Error"}},
		"a Retry-After header":                     {ready: comeAgain, want: Health{Reachable: true, Cause: "its health endpoint responded with 503 Service Unavailable"}},
		"rejected credentials":                     {ready: answers(401), want: Health{Reachable: true, CredentialsRejected: true, Cause: "its health endpoint responded with 401 Unauthorized"}},
		"a Forbidden health endpoint":              {ready: answers(403), want: Health{Reachable: true, CredentialsRejected: true, Cause: "its health endpoint responded with 403 Forbidden"}},
		"no response in time":                      {ready: hangs, limit: 50 * time.Millisecond, want: Health{Cause: "it did not respond in time"}},
		"a connection that ends within the answer": {ready: cutShort, want: Health{Cause: "it closed the connection"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			mux := http.NewServeMux()
			mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) { asked.Add(1); test.ready(w, r) })
			if test.health != nil {
				mux.HandleFunc("/healthz", test.health)
			}
			server := &apiServer{Server: httptest.NewTLSServer(mux)}
			t.Cleanup(server.Close)
			member := newMemberFixture(t, server, "token").mustGet(t)
			if test.limit > 0 {
				member.probeTimeout = test.limit
			}
			if diff := cmp.Diff(test.want, member.Probe(t.Context())); diff != "" {
				t.Errorf("health (-want +got):\n%s", diff)
			}
			if asked.Load() > 1 && !test.want.CredentialsRejected {
				t.Errorf("%d requests to /readyz, want one", asked.Load())
			}
		})
	}
}
