package proxy_test

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

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/servers/aggregated/proxy"
)

// patience is how long a proxy in a hurry waits. Members that a test keeps waiting
// are released by their request's end.
const patience = 300 * time.Millisecond

func TestFailuresNameTheClusterAndWhatHelps(t *testing.T) {
	// A port that was just closed may be another test's by now; nobody listens here.
	const nowhere = "https://127.0.0.1:1"
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
		"nobody there": {
			change: func(spec *clusterv1alpha1.ClusterSpec) { spec.APIEndpoint = nowhere },
			code:   503, want: `no way to cluster "m1": ` + nowhere + ` does not answer`,
		},
		"a proxy that is not there": {
			change: func(spec *clusterv1alpha1.ClusterSpec) {
				spec.ProxyURL = "http://" + strings.TrimPrefix(nowhere, "https://")
			},
			code: 503, want: "see spec.proxyURL",
		},
		"a SOCKS5 proxy that is not there": {
			change: func(spec *clusterv1alpha1.ClusterSpec) {
				spec.ProxyURL = "socks5://" + strings.TrimPrefix(nowhere, "https://")
			},
			code: 503, want: "see spec.proxyURL",
		},
		"a certificate of another CA": {
			change: func(spec *clusterv1alpha1.ClusterSpec) { spec.SecretRef = nil },
			code:   503, want: "without spec.secretRef only certificates that the system trusts are accepted",
		},
		"a member that hangs":            {member: silent, method: "GET", code: 504, want: `cluster "m1" (https://127.0.0.1:`},
		"a member that hangs on a write": {member: silent, method: "POST", code: 504, want: "was silent for 300ms"},
		"a member that hangs up":         {member: reset, method: "POST", code: 502, want: `broke the connection off`},
		"a Pull cluster that nobody can reach": {
			change: func(spec *clusterv1alpha1.ClusterSpec) {
				spec.APIEndpoint, spec.SyncMode = "", clusterv1alpha1.Pull
			},
			code: 503, want: "spec.apiEndpoint is empty: start the agent with --cluster-api-endpoint",
		},
		"a Pull cluster without impersonator": {
			change: func(spec *clusterv1alpha1.ClusterSpec) {
				spec.ImpersonatorSecretRef, spec.SyncMode = nil, clusterv1alpha1.Pull
			},
			code: 503, want: "start the agent with KubeImpersonator among its --report-secrets",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, _ := newFixtureHTTP1(t, test.member)
			if test.member != nil {
				f.proxy.Hurry(patience)
			}
			if test.change != nil {
				test.change(&f.cluster.Spec)
			}
			got := do(t, request(t, test.method, f.front(t).URL+"/proxy/api/v1/pods", "{}"))
			if got.code != test.code || !strings.Contains(got.body, test.want) || !strings.Contains(got.body, `"m1"`) {
				t.Errorf("got %d %q, want %d %q", got.code, got.body, test.code, test.want)
			}
		})
	}
}

// newFixtureHTTP1 is a member that does not know HTTP/2, as behind some proxies.
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

func TestAnOldMemberIsServedOverTLS12(t *testing.T) {
	f, _ := newFixtureHTTP1(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprintf(w, "%s %x", req.Proto, req.TLS.Version)
	}))
	if got := do(t, request(t, "GET", f.front(t).URL+"/proxy/api", "")); got.body != "HTTP/1.1 303" {
		t.Errorf("got %v", got)
	}
}

func TestAMemberIsAskedOverHTTP2(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, req.Proto) }))
	if got := do(t, request(t, "GET", f.front(t).URL+"/proxy/api", "")); got.body != "HTTP/2.0" {
		t.Errorf("got %v", got)
	}
}

func TestAWatchMayBeSilentAndIsPassedOnEventByEvent(t *testing.T) {
	next := make(chan string)
	gone := make(chan struct{})
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Query().Get("watch") == "" {
			<-req.Context().Done()
			return
		}
		defer close(gone)
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
	f.proxy.Hurry(patience)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	front := f.front(t)
	go func() { next <- "first" }()
	resp, err := http.DefaultClient.Do(request(t, "GET", front.URL+"/proxy/api/v1/pods?watch=true", "").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	line := make([]byte, len("second\n"))
	for _, event := range []string{"first", "second"} {
		if event == "second" {
			// Another request runs out of patience in the meantime.
			if got := do(t, request(t, "GET", front.URL+"/proxy/api/v1/pods", "")); got.code != http.StatusGatewayTimeout {
				t.Fatalf("a list of a silent member: got %v", got)
			}
			next <- event
		}
		if n, err := io.ReadFull(resp.Body, line[:len(event)+1]); err != nil || string(line[:n]) != event+"\n" {
			t.Fatalf("got %q, %v, want %s", line[:n], err, event)
		}
	}
	leave()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("the watch goes on in the member although its client has left")
	}
}

func TestAListThatStopsInTheMiddleIsCutOff(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprint(w, `{"items":[`)
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	}))
	f.proxy.Hurry(patience)
	resp, err := http.DefaultClient.Do(request(t, "GET", f.front(t).URL+"/proxy/api/v1/pods", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("half a list %q looks like a whole one", body)
	}
}

// A member can react to being cut off by ending what it does, as if it were done.
func TestWhatIsSaidToARequestThatWasGivenUpIsNoAnswer(t *testing.T) {
	f, _ := newFixture(t, http.NotFoundHandler())
	ctx, end := context.WithCancelCause(t.Context())
	tooLate := roundTripper(func(*http.Request) (*http.Response, error) {
		end(proxy.ErrSilent)
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	resp, err := f.proxy.Send(f.cluster, tooLate, request(t, "GET", "https://m1/api/v1/pods", "").WithContext(ctx))
	if err == nil {
		_ = resp.Body.Close()
	}
	if !apierrors.IsTimeout(err) {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestTheEndOfAnAnswerThatWasGivenUpIsNone(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	body := proxy.Whole(ctx, io.NopCloser(strings.NewReader("half")))
	if _, err := io.ReadFull(body, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	end(proxy.ErrSilent)
	if rest, err := io.ReadAll(body); !errors.Is(err, proxy.ErrSilent) {
		t.Errorf("got %q, %v, want that the member is silent", rest, err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A client that reads nothing must not keep its place among the requests.
func TestWhoDoesNotReadIsCutOff(t *testing.T) {
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
		"after a while":                      {path: "/proxy/api/v1/pods", end: func(*fixture) {}},
		"from a watch, when the member left": {path: "/proxy/api/v1/pods?watch=true", end: func(f *fixture) { f.proxy.Forget("m1") }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, _ := newFixture(t, endless)
			f.proxy.Hurry(patience)
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
				t.Error("the request goes on")
			}
		})
	}
}

func TestBodiesAreStreamed(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(flushing{w}, req.Body)
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
	// Each chunk comes back before the next one is sent.
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

// flushing holds nothing back.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	_ = http.NewResponseController(f.ResponseWriter).Flush()
	return n, err
}

func TestPathsKeepTheirSpelling(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, req.URL.RequestURI()) }))
	front := f.front(t)
	for path, want := range map[string]answer{
		"/api/v1/namespaces/a%2Fb":            {200, "/api/v1/namespaces/a%2Fb"},
		"/files/100%25/%C3%A4?x=%2F":          {200, "/files/100%25/%C3%A4?x=%2F"},
		"/apis/rbac/clusterroles/system:node": {200, "/apis/rbac/clusterroles/system:node"},
		"/a//b/":                              {200, "/a//b/"},
		"/a/..b":                              {200, "/a/..b"},
		"/a/%2e%2e/b":                         {400, "path \"/a/../b\" must not contain \"..\"\n"},
		"/a/%2e%2e%2fb":                       {400, "path \"/a/../b\" must not contain \"..\"\n"},
	} {
		if got := do(t, request(t, "GET", front.URL+"/proxy"+path, "")); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

func TestAMemberThatLeftIsLeftAlone(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Upgrade") != "" {
			echo(w, req)
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	}))
	front := f.front(t)
	leave := map[string]func(){
		"forgotten": func() { f.proxy.Forget("m1") },
		"deleted elsewhere": func() {
			f.cluster.Name = "m2"
			f.proxy.Sweep(t.Context())
			f.cluster.Name = "m1"
		},
		"the end": f.proxy.Destroy,
	}
	for _, how := range []string{"forgotten", "deleted elsewhere", "the end"} {
		_, stream, switched := upgrade(t, front, "/proxy/exec") //nolint:bodyclose // the connection is closed by upgrade
		if switched.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%s: got %s", how, switched.Status)
		}
		watch, err := http.DefaultClient.Do(request(t, "GET", front.URL+"/proxy/api/v1/pods?watch=true", ""))
		if err != nil {
			t.Fatal(err)
		}
		if line, err := stream.ReadString('\n'); err != nil || line != "/exec as alice\n" {
			t.Errorf("%s: the member saw %q, %v", how, line, err)
		}
		f.proxy.Sweep(t.Context())
		leave[how]()
		if _, err := io.ReadAll(watch.Body); err == nil {
			t.Errorf("%s: the watch ended as if there was nothing more to say", how)
		}
		_ = watch.Body.Close()
		if rest, err := io.ReadAll(stream); err != nil || len(rest) > 0 {
			t.Errorf("%s: the stream ended with %q, %v", how, rest, err)
		}
	}
	if got := do(t, request(t, "GET", front.URL+"/proxy/api", "")); got.code != http.StatusServiceUnavailable {
		t.Errorf("after the end: got %v", got)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(echo))
	release := f.proxy.Occupy(t.Context(), f.cluster, proxy.MaxUpgrades)
	front := f.front(t)
	_, _, resp := upgrade(t, front, "/proxy/exec") //nolint:bodyclose // the connection is closed by upgrade
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(body), `500 streams are under way to cluster "m1"`) {
		t.Errorf("got %s %q", resp.Status, body)
	}
	release()
	if _, _, resp := upgrade(t, front, "/proxy/exec"); resp.StatusCode != http.StatusSwitchingProtocols { //nolint:bodyclose // the connection is closed by upgrade
		t.Errorf("after some ended: got %s", resp.Status)
	}
}
