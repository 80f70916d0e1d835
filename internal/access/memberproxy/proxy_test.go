package memberproxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// clientResponse is the response that a client receives.
type clientResponse struct {
	code int
	body string
}

func sendRequest(t *testing.T, req *http.Request) clientResponse {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return clientResponse{resp.StatusCode, string(body)}
}

func newRequest(t *testing.T, method, target, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestRequestIsForwardedUnchanged(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(w, "%s %s %s", req.Method, req.URL.RequestURI(), body)
	}))
	front := f.front(t)
	tests := map[string]struct {
		endpointPath, method, path, body string
		want                             clientResponse
	}{
		"a read with query":                {method: "GET", path: "/proxy/api/v1/pods?limit=5&continue=a%2Fb", want: clientResponse{200, "GET /api/v1/pods?limit=5&continue=a%2Fb "}},
		"a write with body":                {method: "PATCH", path: "/proxy/api/v1/namespaces/a", body: "{}", want: clientResponse{200, "PATCH /api/v1/namespaces/a {}"}},
		"a slash at the end is kept":       {method: "GET", path: "/proxy/openapi/", want: clientResponse{200, "GET /openapi/ "}},
		"the root of the member":           {method: "GET", path: "/proxy/", want: clientResponse{200, "GET / "}},
		"the path of the endpoint is kept": {endpointPath: "/base/", method: "DELETE", path: "/proxy/api", want: clientResponse{200, "DELETE /base/api "}},
		"an empty path is redirected to /": {method: "GET", path: "/proxy", want: clientResponse{301, ""}},
		"an empty path of a write is sent": {method: "POST", path: "/proxy", want: clientResponse{200, "POST / "}},
	}
	endpoint := f.cluster.Spec.APIEndpoint
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f.cluster.Spec.APIEndpoint = endpoint + test.endpointPath
			got := sendRequest(t, newRequest(t, test.method, front.URL+test.path, test.body))
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(clientResponse{})); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyTheCallerIsImpersonated(t *testing.T) {
	var received http.Header
	var host string
	f, member := newFixture(t, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		received, host = req.Header.Clone(), req.Host
	}))
	req := newRequest(t, "GET", f.front(t).URL+"/proxy/api", "")
	for name, value := range map[string]string{
		"Authorization": "Bearer stolen", "Impersonate-User": "root", "Impersonate-Group": "system:masters",
		"Impersonate-Uid": "0", "Impersonate-Extra-Scope": "everything", "X-Remote-User": "root", "X-Remote-Extra-A": "b",
		"Accept": "application/json",
	} {
		req.Header.Set(name, value)
	}
	if got := sendRequest(t, req); got.code != http.StatusOK {
		t.Fatalf("got %v", got)
	}
	got := map[string][]string{}
	for name, values := range received {
		if name == "Authorization" || name == "Accept" || strings.HasPrefix(name, "Impersonate") || strings.HasPrefix(name, "X-Remote") {
			got[name] = values
		}
	}
	want := map[string][]string{
		"Accept":            {"application/json"},
		"Authorization":     {"Bearer impersonator-token"},
		"Impersonate-User":  {"alice"},
		"Impersonate-Group": {"dev", "ops"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if want := strings.TrimPrefix(member.URL, "https://"); host != want {
		t.Errorf("the Host header is %s, want %s", host, want)
	}
}

func TestMissingSettingsAreReported(t *testing.T) {
	f, _ := newFixture(t, http.NotFoundHandler())
	cluster, secrets := f.cluster.DeepCopy(), f.secrets
	front := f.front(t)
	tests := map[string]struct {
		change func(*clusterv1alpha1.ClusterSpec, map[string]*corev1.Secret)
		want   string
	}{
		"no endpoint":            {func(spec *clusterv1alpha1.ClusterSpec, _ map[string]*corev1.Secret) { spec.APIEndpoint = "" }, "spec.apiEndpoint is empty"},
		"no impersonator":        {func(spec *clusterv1alpha1.ClusterSpec, _ map[string]*corev1.Secret) { spec.ImpersonatorSecretRef = nil }, "spec.impersonatorSecretRef is empty"},
		"no impersonator secret": {func(_ *clusterv1alpha1.ClusterSpec, s map[string]*corev1.Secret) { delete(s, "m1-impersonator") }, `not found: write the token of the service account karmada-impersonator of the member to key "token"`},
		"no impersonator secret of a cluster with an agent": {func(spec *clusterv1alpha1.ClusterSpec, s map[string]*corev1.Secret) {
			spec.SyncMode = clusterv1alpha1.Pull
			delete(s, "m1-impersonator")
		}, "not found: restart its agent, which writes the token to the Secret"},
		"no token": {func(_ *clusterv1alpha1.ClusterSpec, s map[string]*corev1.Secret) {
			s["m1-impersonator"] = &corev1.Secret{}
		}, `has no key "token"`},
		"no secret with a CA": {func(_ *clusterv1alpha1.ClusterSpec, s map[string]*corev1.Secret) { delete(s, "m1") }, "reading secret karmada-cluster/m1"},
		"an invalid CA": {func(_ *clusterv1alpha1.ClusterSpec, s map[string]*corev1.Secret) {
			s["m1"] = &corev1.Secret{Data: map[string][]byte{"caBundle": []byte("x")}}
		}, "the CA bundle contains no certificate"},
		"a proxy of unknown scheme": {func(spec *clusterv1alpha1.ClusterSpec, _ map[string]*corev1.Secret) { spec.ProxyURL = "ftp://x" }, `proxy scheme "ftp"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f.cluster = cluster.DeepCopy()
			f.secrets = map[string]*corev1.Secret{"m1": secrets["m1"], "m1-impersonator": secrets["m1-impersonator"]}
			test.change(&f.cluster.Spec, f.secrets)
			got := sendRequest(t, newRequest(t, "GET", front.URL+"/proxy/api", ""))
			if got.code != http.StatusServiceUnavailable || !strings.Contains(got.body, test.want) || !strings.Contains(got.body, `"m1"`) {
				t.Errorf("got %d %q, want 503 with cluster m1 and %q", got.code, got.body, test.want)
			}
		})
	}
}

func TestMemberCertificateIsVerified(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	front := f.front(t)
	get := func() int { return sendRequest(t, newRequest(t, "GET", front.URL+"/proxy/api", "")).code }
	if got := get(); got != http.StatusOK {
		t.Errorf("with the CA of the member: got %d", got)
	}
	f.cluster.Spec.SecretRef = nil
	if got := get(); got != http.StatusServiceUnavailable {
		t.Errorf("with the CAs of the system: got %d, want an error", got)
	}
	f.cluster.Spec.InsecureSkipTLSVerification = true
	if got := get(); got != http.StatusOK {
		t.Errorf("without verification: got %d", got)
	}
}

func TestConnectionsArePooledUntilSettingsChange(t *testing.T) {
	var mu sync.Mutex
	peers := map[string]bool{}
	f, _ := newFixture(t, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		peers[req.RemoteAddr] = true
	}))
	front := f.front(t)
	connections := func() int {
		for range 3 {
			sendRequest(t, newRequest(t, "GET", front.URL+"/proxy/api", ""))
		}
		mu.Lock()
		defer mu.Unlock()
		return len(peers)
	}
	if got := connections(); got != 1 {
		t.Errorf("%d connections for sequential requests, want 1", got)
	}
	f.secrets["m1"] = &corev1.Secret{Data: map[string][]byte{"caBundle": append(f.secrets["m1"].Data["caBundle"], '\n')}}
	if got := connections(); got != 2 {
		t.Errorf("%d connections after the CA changed, want 2", got)
	}
	f.secrets["m1-impersonator"] = &corev1.Secret{Data: map[string][]byte{"token": []byte("new")}}
	if got := connections(); got != 2 {
		t.Errorf("%d connections after the token changed, want the same 2", got)
	}
	f.proxy.RemoveMember("m1")
	if got := connections(); got != 3 {
		t.Errorf("%d connections after the cluster was removed, want 3", got)
	}
}

// upgrade opens a stream through the front server, and returns the stream and the response.
func upgrade(t *testing.T, front *httptest.Server, path string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	req := newRequest(t, "POST", front.URL+path, "")
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, req)
	if err != nil {
		t.Fatal(err)
	}
	return conn, reader, resp
}

// echo serves upgrades. It sends a line that contains the path and the user, and then the bytes that it
// receives.
func echo(w http.ResponseWriter, req *http.Request) {
	if strings.HasSuffix(req.URL.Path, "/forbidden") {
		http.Error(w, "not you", http.StatusForbidden)
		return
	}
	if strings.HasSuffix(req.URL.Path, "/ignored") {
		return
	}
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	protocol := req.Header.Get("Upgrade")
	if strings.HasSuffix(req.URL.Path, "/changed") {
		protocol = "other"
	}
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n%s as %s\n",
		protocol, req.URL.RequestURI(), req.Header.Get("Impersonate-User"))
	_, _ = io.Copy(conn, buffered)
}

func TestUpgradeIsCopiedInBothDirections(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(echo))
	front := f.front(t)
	conn, reader, resp := upgrade(t, front, "/proxy/exec?command=ls&command=-l") //nolint:bodyclose // the connection is closed by upgrade
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %s", resp.Status)
	}
	if line, err := reader.ReadString('\n'); err != nil || line != "/exec?command=ls&command=-l as alice\n" {
		t.Errorf("the member received %q, %v", line, err)
	}
	fmt.Fprintln(conn, "hello")
	if line, err := reader.ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("received %q, %v", line, err)
	}
}

func TestRejectedUpgradesAreExplained(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(echo))
	front := f.front(t)
	tests := map[string]struct {
		path string
		code int
		body string
	}{
		"an error of the member is passed on":        {"/proxy/forbidden", http.StatusForbidden, "not you"},
		"a member that does not upgrade is an error": {"/proxy/ignored", http.StatusBadGateway, "invalid upgrade response"},
		"another protocol is an error":               {"/proxy/changed", http.StatusBadGateway, `invalid upgrade response of cluster "m1": 101 Switching Protocols other`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, resp := upgrade(t, front, test.path) //nolint:bodyclose // the connection is closed by upgrade
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != test.code || !strings.Contains(string(body), test.body) {
				t.Errorf("got %d %q, want %d %q", resp.StatusCode, body, test.code, test.body)
			}
		})
	}
}

// tunnelProxy is an HTTP proxy that opens tunnels and records the CONNECT requests.
type tunnelProxy struct {
	mu      sync.Mutex
	headers []http.Header
}

func (t *tunnelProxy) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	t.mu.Lock()
	t.headers = append(t.headers, req.Header.Clone())
	t.mu.Unlock()
	if req.Method != http.MethodConnect || req.Header.Get("X-Refuse") != "" {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	target, err := net.Dial("tcp", req.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer target.Close()
	w.WriteHeader(http.StatusOK)
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	go func() { _, _ = io.Copy(target, buffered); _ = target.Close() }()
	_, _ = io.Copy(conn, target)
}

func TestHTTPProxy(t *testing.T) {
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Upgrade") != "" {
			echo(w, req)
		}
	}))
	tunnel := &tunnelProxy{}
	server := httptest.NewServer(tunnel)
	t.Cleanup(server.Close)
	// Close the connections, because tunnels outlast the requests that opened them.
	t.Cleanup(server.CloseClientConnections)
	proxyURL, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxyURL.User = url.UserPassword("joe", "secret")
	f.cluster.Spec.ProxyURL = proxyURL.String()
	f.cluster.Spec.ProxyHeader = map[string]string{"x-token": "a,b"}
	front := f.front(t)

	if got := sendRequest(t, newRequest(t, "GET", front.URL+"/proxy/api", "")); got.code != http.StatusOK {
		t.Errorf("request: got %v", got)
	}
	if _, _, resp := upgrade(t, front, "/proxy/exec"); resp.StatusCode != http.StatusSwitchingProtocols { //nolint:bodyclose // the connection is closed by upgrade
		t.Errorf("upgrade: got %s", resp.Status)
	}
	tunnel.mu.Lock()
	if len(tunnel.headers) != 2 {
		t.Errorf("%d tunnels, want 2", len(tunnel.headers))
	}
	for _, header := range tunnel.headers {
		if !cmp.Equal(header["X-Token"], []string{"a", "b"}) || header.Get("Proxy-Authorization") != "Basic am9lOnNlY3JldA==" {
			t.Errorf("the proxy received %v", header)
		}
	}
	tunnel.mu.Unlock()

	f.cluster.Spec.ProxyHeader = map[string]string{"x-refuse": "yes"}
	got := sendRequest(t, newRequest(t, "GET", front.URL+"/proxy/api", ""))
	if got.code != http.StatusServiceUnavailable || !strings.Contains(got.body, "403") || strings.Contains(got.body, "secret") {
		t.Errorf("a rejecting proxy: got %v, want its status and no password", got)
	}
}

// serveSOCKS5 starts a proxy that implements only CONNECT to an IPv4 address.
func serveSOCKS5(t *testing.T, connects chan<- string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go handleSOCKS5(conn, connects)
		}
	}()
	return "socks5://" + listener.Addr().String()
}

func handleSOCKS5(conn net.Conn, connects chan<- string) {
	defer conn.Close()
	read := func(n int) []byte {
		b := make([]byte, n)
		_, _ = io.ReadFull(conn, b)
		return b
	}
	methods := read(2)
	read(int(methods[1]))
	_, _ = conn.Write([]byte{5, 0})
	head := read(4)
	if head[3] != 1 {
		return
	}
	ip := net.IP(read(4))
	port := read(2)
	address := net.JoinHostPort(ip.String(), fmt.Sprint(int(port[0])<<8|int(port[1])))
	connects <- address
	target, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer target.Close()
	_, _ = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	go func() { _, _ = io.Copy(target, conn); _ = target.Close() }()
	_, _ = io.Copy(conn, target)
}

func TestSOCKS5Proxy(t *testing.T) {
	f, member := newFixture(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	connects := make(chan string, 1)
	f.cluster.Spec.ProxyURL = serveSOCKS5(t, connects)
	if got := sendRequest(t, newRequest(t, "GET", f.front(t).URL+"/proxy/api", "")); got.code != http.StatusOK {
		t.Fatalf("got %v", got)
	}
	if got := <-connects; got != member.Listener.Addr().String() {
		t.Errorf("the proxy connects to %s, want %s", got, member.Listener.Addr())
	}
}
