package member

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	domain "karmada.io/karmada/internal/domain/cluster"
)

// identityServer is an API server with an identity. It records the requests that it receives.
type identityServer struct {
	*httptest.Server
	uid string

	mu            sync.Mutex
	identityReads int
	otherRequests []string
	// clientCertificate is the client certificate of the last request, or nil.
	clientCertificate *x509.Certificate
}

// newIdentityServer starts the API server of a cluster with the given UID. Without a UID, the
// server returns Forbidden when its identity is read.
func newIdentityServer(t *testing.T, uid string, http2 bool) *identityServer {
	t.Helper()
	s := &identityServer{uid: uid}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (i *identityServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(r.TLS.PeerCertificates) > 0 {
		i.clientCertificate = r.TLS.PeerCertificates[0]
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/readyz":
		_, _ = io.WriteString(w, "ok")
	case "/api/v1/namespaces/kube-system":
		i.identityReads++
		if i.uid == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprintf(w, `{"metadata":{"uid":%q}}`, i.uid)
	default:
		i.otherRequests = append(i.otherRequests, r.Method+" "+r.URL.Path)
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}
}

func (i *identityServer) requests() (asked int, others []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.identityReads, append([]string(nil), i.otherRequests...)
}

// virtualIP forwards connections to one server at a time.
type virtualIP struct {
	listener net.Listener

	mu          sync.Mutex
	target      string
	connections []net.Conn
}

func newVirtualIP(t *testing.T) *virtualIP {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &virtualIP{listener: listener}
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { v.forward(in) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); v.moveTo(""); passing.Wait() })
	return v
}

// moveTo closes all connections and forwards new ones to another server, as if another machine took
// over the address.
func (v *virtualIP) moveTo(address string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.target = address
	for _, conn := range v.connections {
		_ = conn.Close()
	}
	v.connections = nil
}

func (v *virtualIP) forward(in net.Conn) {
	defer in.Close()
	v.mu.Lock()
	out, err := net.Dial("tcp", v.target)
	if err != nil {
		v.mu.Unlock()
		return
	}
	v.connections = append(v.connections, in, out)
	v.mu.Unlock()
	defer out.Close()
	ended := make(chan struct{})
	go func() { defer close(ended); _, _ = io.Copy(in, out); _ = in.Close() }()
	_, _ = io.Copy(out, in)
	_ = out.Close()
	<-ended
}

func addressOf(s *identityServer) string { return s.Listener.Addr().String() }

// createConfigMap sends an object to the member.
func createConfigMap(t *testing.T, target *Member) error {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	object.SetNamespace("default")
	object.SetName("web")
	raw, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return target.discovery.RESTClient().Post().AbsPath("/api/v1/namespaces/default/configmaps").Body(raw).Do(t.Context()).Error()
}

// openBehind opens a member at a virtual IP. The Cluster of the member was registered with an ID.
func openBehind(t *testing.T, v *virtualIP, id string) *Member {
	t.Helper()
	w := newMemberFixture(t, newAPIServer(t, "token"), "token")
	w.cluster.Spec.ID, w.cluster.Spec.APIEndpoint = id, "https://"+v.listener.Addr().String()
	if err := w.karmada.Update(t.Context(), w.cluster, client.FieldOwner("test")); err != nil {
		t.Fatal(err)
	}
	return w.mustGet(t)
}

func TestIdentityMismatchBlocksRequests(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			right, wrong, vip := newIdentityServer(t, "right", http2), newIdentityServer(t, "wrong", http2), newVirtualIP(t)
			vip.moveTo(addressOf(right))
			target := openBehind(t, vip, "right")
			for range 3 {
				if err := createConfigMap(t, target); err != nil {
					t.Fatalf("to the right cluster: %v", err)
				}
			}
			if asked, writes := right.requests(); asked > 2 || len(writes) != 3 {
				t.Errorf("the right cluster got %d identity reads and the requests %v, want at most 2 identity reads and 3 writes", asked, writes)
			}

			vip.moveTo(addressOf(wrong))
			err := error(nil)
			for range 5 {
				// The first requests may still use the connections that were just closed.
				err = createConfigMap(t, target)
			}
			var mismatch *IdentityError
			if !errors.As(err, &mismatch) || mismatch.Identity.OtherID != "wrong" {
				t.Fatalf("to another cluster: %v", err)
			}
			for _, want := range []string{"registered with ID right", "the cluster with ID wrong", vip.listener.Addr().String(), "kubectl patch cluster m1"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not contain %q", err, want)
				}
			}
			if _, writes := wrong.requests(); len(writes) > 0 {
				t.Errorf("the other cluster got %v", writes)
			}
			health := target.Probe(t.Context())
			if health.Healthy || health.Identity.OtherID != "wrong" {
				t.Errorf("the probe of another cluster returns %+v", health)
			}

			vip.moveTo(addressOf(right))
			for range 5 {
				if err = createConfigMap(t, target); err == nil {
					break
				}
			}
			if err != nil {
				t.Errorf("to the right cluster again: %v", err)
			}
			if diff := cmp.Diff(Health{Reachable: true, Healthy: true, Identity: domain.IdentityCheck{Proven: true}}, target.Probe(t.Context())); diff != "" {
				t.Errorf("the probe of the right cluster (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParallelRequestsShareIdentityChecks(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			right, vip := newIdentityServer(t, "right", http2), newVirtualIP(t)
			vip.moveTo(addressOf(right))
			target := openBehind(t, vip, "right")
			var running sync.WaitGroup
			for range 20 {
				running.Go(func() {
					if err := createConfigMap(t, target); err != nil {
						t.Error(err)
					}
				})
			}
			running.Wait()
			if asked, writes := right.requests(); asked == 0 || http2 && asked > 2 || len(writes) != 20 {
				t.Errorf("%d identity reads and %d writes, want 20 writes after an identity read", asked, len(writes))
			}
		})
	}
}

// TestServerThatClosesConnections checks that a member is usable behind a proxy that closes each
// connection after one response, and that another cluster behind this proxy gets no request.
func TestServerThatClosesConnections(t *testing.T) {
	right, wrong, vip := newIdentityServer(t, "right", false), newIdentityServer(t, "wrong", false), newVirtualIP(t)
	right.Config.SetKeepAlivesEnabled(false)
	wrong.Config.SetKeepAlivesEnabled(false)
	vip.moveTo(addressOf(right))
	target := openBehind(t, vip, "right")
	for range 3 {
		if err := createConfigMap(t, target); err != nil {
			t.Fatalf("to the right cluster: %v", err)
		}
	}
	if health := target.Probe(t.Context()); !health.Healthy || !health.Identity.Proven {
		t.Errorf("the probe returns %+v", health)
	}
	if asked, writes := right.requests(); asked < len(writes) || len(writes) != 3 {
		t.Errorf("%d identity reads and the requests %v, want 3 writes, each after an identity read", asked, writes)
	}
	vip.moveTo(addressOf(wrong))
	var mismatch *IdentityError
	if err := createConfigMap(t, target); !errors.As(err, &mismatch) || mismatch.Identity.OtherID != "wrong" {
		t.Errorf("to another cluster: %v", err)
	}
	if _, writes := wrong.requests(); len(writes) > 0 {
		t.Errorf("the other cluster got %v", writes)
	}
}

func TestUnknownIdentityBlocksRequests(t *testing.T) {
	secretive, vip := newIdentityServer(t, "", true), newVirtualIP(t)
	vip.moveTo(addressOf(secretive))
	target := openBehind(t, vip, "right")
	var unknown *IdentityError
	if err := createConfigMap(t, target); !errors.As(err, &unknown) || unknown.Identity.UnknownCause == "" || !strings.Contains(err.Error(), "403 Forbidden; let the account of Karmada in the member get that Namespace") {
		t.Errorf("got %v", err)
	}
	if _, writes := secretive.requests(); len(writes) > 0 {
		t.Errorf("the unidentified cluster got %v", writes)
	}
	if health := target.Probe(t.Context()); health.Healthy || health.Identity.UnknownCause == "" {
		t.Errorf("the probe returns %+v", health)
	}
}

func TestClusterWithoutIDNeedsNoProof(t *testing.T) {
	secretive, vip := newIdentityServer(t, "", true), newVirtualIP(t)
	vip.moveTo(addressOf(secretive))
	target := openBehind(t, vip, "")
	if err := createConfigMap(t, target); err != nil {
		t.Error(err)
	}
	if asked, _ := secretive.requests(); asked > 0 || !target.Probe(t.Context()).Healthy {
		t.Errorf("%d identity reads", asked)
	}
}

func TestChangedIDAcceptsAnotherCluster(t *testing.T) {
	wrong, vip := newIdentityServer(t, "wrong", true), newVirtualIP(t)
	vip.moveTo(addressOf(wrong))
	w := newMemberFixture(t, newAPIServer(t, "token"), "token")
	w.cluster.Spec.APIEndpoint = "https://" + vip.listener.Addr().String()
	for _, id := range []string{"right", "wrong"} {
		w.cluster.Spec.ID = id
		if err := w.karmada.Update(t.Context(), w.cluster); err != nil {
			t.Fatal(err)
		}
		if err := createConfigMap(t, w.mustGet(t)); (err == nil) != (id == "wrong") {
			t.Errorf("with spec.id %q: %v", id, err)
		}
	}
}
