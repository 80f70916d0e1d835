package memberproxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/memberproxy"
)

// testTimeout is the proxies' timeout in tests. Members that block continue when their request ends.
const testTimeout = 300 * time.Millisecond

func TestErrorsNameTheClusterAndTheRemedy(t *testing.T) {
	// No server listens on port 1. A port that was just closed could already be used by another test.
	const unreachable = "https://127.0.0.1:1"
	silent := func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		<-req.Context().Done()
	}
	reset := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
	tests := map[string]struct {
		change func(*clusterv1alpha1.ClusterSpec)
		member http.HandlerFunc
		method string
		code   int
		want   string
	}{
		"no server": {
			change: func(spec *clusterv1alpha1.ClusterSpec) { spec.APIEndpoint = unreachable },
			code:   503, want: `cannot reach cluster "m1": ` + unreachable + ` does not respond`,
		},
		"an unreachable proxy": {
			change: func(spec *clusterv1alpha1.ClusterSpec) {
				spec.ProxyURL = "http://" + strings.TrimPrefix(unreachable, "https://")
			},
			code: 503, want: "check spec.proxyURL",
		},
		"an unreachable SOCKS5 proxy": {
			change: func(spec *clusterv1alpha1.ClusterSpec) {
				spec.ProxyURL = "socks5://" + strings.TrimPrefix(unreachable, "https://")
			},
			code: 503, want: "check spec.proxyURL",
		},
		"a certificate of another CA": {
			change: func(spec *clusterv1alpha1.ClusterSpec) { spec.SecretRef = nil },
			code:   503, want: "without spec.secretRef, only certificates that the system trusts are accepted",
		},
		"a member that hangs":                 {member: silent, method: "GET", code: 504, want: `cluster "m1" (https://127.0.0.1:`},
		"a member that hangs on a write":      {member: silent, method: "POST", code: 504, want: "sent no data for 300ms"},
		"a member that closes the connection": {member: reset, method: "POST", code: 502, want: `closed the connection`},
		"a Pull cluster without endpoint": {
			change: func(spec *clusterv1alpha1.ClusterSpec) {
				spec.APIEndpoint, spec.SyncMode = "", clusterv1alpha1.Pull
			},
			code: 503, want: "spec.apiEndpoint is empty: start the agent with --cluster-api-endpoint",
		},
		"a Pull cluster without impersonator": {
			change: func(spec *clusterv1alpha1.ClusterSpec) {
				spec.ImpersonatorSecretRef, spec.SyncMode = nil, clusterv1alpha1.Pull
			},
			code: 503, want: "start the agent with --report-secrets including KubeImpersonator",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, _ := newFixtureHTTP1(t, test.member)
			if test.member != nil {
				f.proxy.SetTimeouts(testTimeout)
			}
			if test.change != nil {
				test.change(&f.cluster.Spec)
			}
			got := sendRequest(t, newRequest(t, test.method, f.front(t).URL+"/proxy/api/v1/pods", "{}"))
			if got.code != test.code || !strings.Contains(got.body, test.want) || !strings.Contains(got.body, `"m1"`) {
				t.Errorf("got %d %q, want %d %q", got.code, got.body, test.code, test.want)
			}
		})
	}
}

// newFixtureHTTP1 registers a member that does not support HTTP/2, for example because it is behind a
// proxy.
func newFixtureHTTP1(t *testing.T, handler http.Handler) (*fixture, *httptest.Server) {
	t.Helper()
	if handler == nil || handler.(http.HandlerFunc) == nil {
		handler = http.NotFoundHandler()
	}
	f, _ := newFixture(t, http.NotFoundHandler())
	member := httptest.NewUnstartedServer(handler)
	member.TLS = &tls.Config{MaxVersion: tls.VersionTLS12}
	member.StartTLS()
	t.Cleanup(member.Close)
	f.cluster.Spec.APIEndpoint = member.URL
	f.secrets["m1"].Data["caBundle"] = caOf(member)
	return f, member
}

func TestMemberWithTLS12(t *testing.T) {
	f, _ := newFixtureHTTP1(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprintf(w, "%s %x", req.Proto, req.TLS.Version)
	}))
	if got := sendRequest(t, newRequest(t, "GET", f.front(t).URL+"/proxy/api", "")); got.body != "HTTP/1.1 303" {
		t.Errorf("got %v", got)
	}
}

func TestMemberWithHTTP2(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, req.Proto) }))
	if got := sendRequest(t, newRequest(t, "GET", f.front(t).URL+"/proxy/api", "")); got.body != "HTTP/2.0" {
		t.Errorf("got %v", got)
	}
}

func TestIdleWatchIsKeptAndFlushed(t *testing.T) {
	next := make(chan string)
	ended := make(chan struct{})
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Query().Get("watch") == "" {
			<-req.Context().Done()
			return
		}
		defer close(ended)
		for {
			select {
			case event := <-next:
				fmt.Fprintln(w, event)
				_ = http.NewResponseController(w).Flush()
			case <-req.Context().Done():
				return
			}
		}
	}))
	f.proxy.SetTimeouts(testTimeout)
	ctx, disconnect := context.WithCancel(t.Context())
	defer disconnect()
	front := f.front(t)
	go func() { next <- "first" }()
	resp, err := http.DefaultClient.Do(newRequest(t, "GET", front.URL+"/proxy/api/v1/pods?watch=true", "").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	line := make([]byte, len("second\n"))
	for _, event := range []string{"first", "second"} {
		if event == "second" {
			// While the watch is open, another request reaches its timeout.
			if got := sendRequest(t, newRequest(t, "GET", front.URL+"/proxy/api/v1/pods", "")); got.code != http.StatusGatewayTimeout {
				t.Fatalf("a list of a member that sends no data: got %v", got)
			}
			next <- event
		}
		if n, err := io.ReadFull(resp.Body, line[:len(event)+1]); err != nil || string(line[:n]) != event+"\n" {
			t.Fatalf("got %q, %v, want %s", line[:n], err, event)
		}
	}
	disconnect()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the watch in the member continues although the client disconnected")
	}
}

func TestIncompleteListIsAnError(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprint(w, `{"items":[`)
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	}))
	f.proxy.SetTimeouts(testTimeout)
	resp, err := http.DefaultClient.Do(newRequest(t, "GET", f.front(t).URL+"/proxy/api/v1/pods", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("half a list %q looks like a complete one", body)
	}
}

// A member can respond to a closed connection by ending the response normally.
func TestResponseToCanceledRequestIsRejected(t *testing.T) {
	f, _ := newFixture(t, http.NotFoundHandler())
	ctx, end := context.WithCancelCause(t.Context())
	lateTransport := roundTripper(func(*http.Request) (*http.Response, error) {
		end(memberproxy.ErrIdle)
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	resp, err := f.proxy.Send(f.cluster, lateTransport, newRequest(t, "GET", "https://m1/api/v1/pods", "").WithContext(ctx))
	if err == nil {
		_ = resp.Body.Close()
	}
	if !apierrors.IsTimeout(err) {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestBodyOfCanceledRequestIsIncomplete(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	body := memberproxy.CompleteBody(ctx, io.NopCloser(strings.NewReader("half")))
	if _, err := io.ReadFull(body, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	end(memberproxy.ErrIdle)
	if rest, err := io.ReadAll(body); !errors.Is(err, memberproxy.ErrIdle) {
		t.Errorf("got %q, %v, want ErrIdle", rest, err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// A client that does not read must not keep its slot.
func TestClientThatDoesNotReadIsDisconnected(t *testing.T) {
	endless := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		for chunk := make([]byte, 1<<16); req.Context().Err() == nil; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	tests := map[string]struct {
		path string
		end  func(*fixture)
	}{
		"after the timeout":                          {path: "/proxy/api/v1/pods", end: func(*fixture) {}},
		"during a watch, when the member is removed": {path: "/proxy/api/v1/pods?watch=true", end: func(f *fixture) { f.proxy.RemoveMember("m1") }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, _ := newFixture(t, endless)
			f.proxy.SetTimeouts(testTimeout)
			done := make(chan struct{})
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				defer close(done)
				f.ServeHTTP(w, req)
			}))
			defer front.Close()
			conn, err := net.Dial("tcp", front.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: front\r\n\r\n", test.path)
			if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			test.end(f)
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Error("the request continues")
			}
		})
	}
}

func TestBodiesAreStreamed(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(flushingWriter{w}, req.Body)
	}))
	front := httptest.NewUnstartedServer(f)
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.Close)
	read, write := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/proxy/api", read)
	if err != nil {
		t.Fatal(err)
	}
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	go func() { _, _ = write.Write(chunk) }()
	resp, err := front.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	back := make([]byte, len(chunk))
	// Each chunk must be returned before the next chunk is sent.
	for i := range 16 {
		if _, err := io.ReadFull(resp.Body, back); err != nil || !bytes.Equal(back, chunk) {
			t.Fatalf("chunk %d: %v", i, err)
		}
		go func() { _, _ = write.Write(chunk) }()
	}
	if _, err := io.ReadFull(resp.Body, back); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		t.Errorf("%d more bytes, %v", len(rest), err)
	}
}

// flushingWriter flushes after each write.
type flushingWriter struct{ http.ResponseWriter }

func (f flushingWriter) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	_ = http.NewResponseController(f.ResponseWriter).Flush()
	return n, err
}

func TestPathsKeepTheirEscaping(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, req.URL.RequestURI()) }))
	front := f.front(t)
	for path, want := range map[string]clientResponse{
		"/api/v1/namespaces/a%2Fb":            {200, "/api/v1/namespaces/a%2Fb"},
		"/files/100%25/%C3%A4?x=%2F":          {200, "/files/100%25/%C3%A4?x=%2F"},
		"/apis/rbac/clusterroles/system:node": {200, "/apis/rbac/clusterroles/system:node"},
		"/a//b/":                              {200, "/a//b/"},
		"/a/..b":                              {200, "/a/..b"},
		"/a/%2e%2e/b":                         {400, "path \"/a/../b\" must not contain \"..\"\n"},
		"/a/%2e%2e%2fb":                       {400, "path \"/a/../b\" must not contain \"..\"\n"},
	} {
		if got := sendRequest(t, newRequest(t, "GET", front.URL+"/proxy"+path, "")); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

// TestNestedProxyPathsAreRejected sends the paths of other proxies through the proxy to one member and
// to all members.
func TestNestedProxyPathsAreRejected(t *testing.T) {
	reached := 0
	f, member := newFixture(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	f.createProxy(t, &rest.Config{Host: member.URL, TLSClientConfig: rest.TLSClientConfig{CAData: caOf(member)}})
	front := f.front(t)
	for _, path := range []string{
		"/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy/api/v1/pods",
		"/apis/search.karmada.io/v1beta1/proxying/strict/proxy",
		"/apis/search.karmada.io/v1alpha1/proxying",
		"/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api",
		"/apis/cluster.karmada.io/v1alpha1/clusters/*/proxy",
		"//apis//search.karmada.io/./v1alpha1///proxying/karmada/proxy",
		"/apis/search%2Ekarmada.io/v1alpha1/prox%79ing/karmada/proxy",
		"/apis/search%252Ekarmada.io/v1alpha1/prox%2579ing/karmada/proxy",
		"/apis%2Fsearch.karmada.io%2Fv1alpha1%2Fproxying%2Fkarmada",
		"/apis%252Fcluster.karmada.io%252Fv1alpha1%252Fclusters%252Fm1%252Fproxy",
		"/api/v1/namespaces/a/services/karmada/proxy/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api",
		`/apis\search.karmada.io\v1alpha1\proxying\karmada`,
	} {
		for _, outer := range []string{"/proxy", "/everywhere"} {
			got := sendRequest(t, newRequest(t, "GET", front.URL+outer+path, ""))
			if got.code != http.StatusBadRequest || !strings.Contains(got.body, "must not contain the path of another proxy") {
				t.Errorf("%s%s: got %v", outer, path, got)
			}
		}
	}
	if got := sendRequest(t, newRequest(t, "GET", front.URL+"/proxy/a%25252525252e", "")); got.code != http.StatusBadRequest {
		t.Errorf("a path that is encoded many times: got %v", got)
	}
	if reached > 0 {
		t.Errorf("%d requests were forwarded", reached)
	}
	for _, path := range []string{
		"/apis/cluster.karmada.io/v1alpha1/clusters/proxy", "/apis/search.karmada.io/v1alpha1/resourceregistries/proxying",
		"/api/v1/namespaces/proxying/pods/proxy",
	} {
		if got := sendRequest(t, newRequest(t, "GET", front.URL+"/proxy"+path, "")); got.code != http.StatusOK {
			t.Errorf("%s: got %v", path, got)
		}
	}
}

func TestConnectionsEndWhenTheMemberIsRemoved(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Upgrade") != "" {
			echo(w, req)
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	}))
	front := f.front(t)
	remove := map[string]func(){
		"removed": func() { f.proxy.RemoveMember("m1") },
		"deleted by another replica": func() {
			f.cluster.Name = "m2"
			f.proxy.RemoveDeletedMembers(t.Context())
			f.cluster.Name = "m1"
		},
		"proxy stopped": f.proxy.Destroy,
	}
	for _, how := range []string{"removed", "deleted by another replica", "proxy stopped"} {
		_, stream, switched := upgrade(t, front, "/proxy/exec") //nolint:bodyclose // the connection is closed by upgrade
		if switched.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%s: got %s", how, switched.Status)
		}
		watch, err := http.DefaultClient.Do(newRequest(t, "GET", front.URL+"/proxy/api/v1/pods?watch=true", ""))
		if err != nil {
			t.Fatal(err)
		}
		if line, err := stream.ReadString('\n'); err != nil || line != "/exec as alice\n" {
			t.Errorf("%s: the member received %q, %v", how, line, err)
		}
		f.proxy.RemoveDeletedMembers(t.Context())
		remove[how]()
		if _, err := io.ReadAll(watch.Body); err == nil {
			t.Errorf("%s: the watch ended without an error", how)
		}
		_ = watch.Body.Close()
		if rest, err := io.ReadAll(stream); err != nil || len(rest) > 0 {
			t.Errorf("%s: the stream ended with %q, %v", how, rest, err)
		}
	}
	if got := sendRequest(t, newRequest(t, "GET", front.URL+"/proxy/api", "")); got.code != http.StatusServiceUnavailable {
		t.Errorf("after the stop: got %v", got)
	}
}

func TestStreamLimit(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(echo))
	release := f.proxy.AcquireUpgrades(t.Context(), f.cluster, memberproxy.MaxUpgrades)
	front := f.front(t)
	_, _, resp := upgrade(t, front, "/proxy/exec") //nolint:bodyclose // the connection is closed by upgrade
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(body), `500 streams are in progress for cluster "m1"`) {
		t.Errorf("got %s %q", resp.Status, body)
	}
	release()
	if _, _, resp := upgrade(t, front, "/proxy/exec"); resp.StatusCode != http.StatusSwitchingProtocols { //nolint:bodyclose // the connection is closed by upgrade
		t.Errorf("after some ended: got %s", resp.Status)
	}
}
