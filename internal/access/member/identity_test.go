package member

import (
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

// identified is an API server with an identity that counts what it is asked.
type identified struct {
	*httptest.Server
	uid string

	mu     sync.Mutex
	asked  int
	others []string
}

// serveIdentity serves a cluster with that UID; without one no client may read it.
func serveIdentity(t *testing.T, uid string, http2 bool) *identified {
	t.Helper()
	s := &identified{uid: uid}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *identified) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/readyz":
		_, _ = io.WriteString(w, "ok")
	case "/api/v1/namespaces/kube-system":
		s.asked++
		if s.uid == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprintf(w, `{"metadata":{"uid":%q}}`, s.uid)
	default:
		s.others = append(s.others, r.Method+" "+r.URL.Path)
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}
}

func (s *identified) received() (asked int, others []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, append([]string(nil), s.others...)
}

// virtualIP passes connections on to one server at a time.
type virtualIP struct {
	listener net.Listener

	mu   sync.Mutex
	to   string
	open []net.Conn
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
			passing.Go(func() { v.pass(in) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); v.moveTo(""); passing.Wait() })
	return v
}

// moveTo ends all connections, as when another machine takes the address.
func (v *virtualIP) moveTo(address string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.to = address
	for _, conn := range v.open {
		_ = conn.Close()
	}
	v.open = nil
}

func (v *virtualIP) pass(in net.Conn) {
	defer in.Close()
	v.mu.Lock()
	out, err := net.Dial("tcp", v.to)
	if err != nil {
		v.mu.Unlock()
		return
	}
	v.open = append(v.open, in, out)
	v.mu.Unlock()
	defer out.Close()
	ended := make(chan struct{})
	go func() { defer close(ended); _, _ = io.Copy(in, out); _ = in.Close() }()
	_, _ = io.Copy(out, in)
	_ = out.Close()
	<-ended
}

func address(s *identified) string { return s.Listener.Addr().String() }

// write sends an object to the member.
func write(t *testing.T, target *Member) error {
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

// guarded leads to the address of a virtual IP, whose Cluster was registered with an ID.
func guarded(t *testing.T, v *virtualIP, id string) *Member {
	t.Helper()
	w := newWorld(t, newAPIServer(t, "token"), "token")
	w.cluster.Spec.ID, w.cluster.Spec.APIEndpoint = id, "https://"+v.listener.Addr().String()
	if err := w.karmada.Update(t.Context(), w.cluster, client.FieldOwner("test")); err != nil {
		t.Fatal(err)
	}
	return w.get(t)
}

func TestNothingIsSentToAnotherClusterThanTheRegisteredOne(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			right, wrong, vip := serveIdentity(t, "right", http2), serveIdentity(t, "wrong", http2), newVirtualIP(t)
			vip.moveTo(address(right))
			target := guarded(t, vip, "right")
			for range 3 {
				if err := write(t, target); err != nil {
					t.Fatalf("to the right cluster: %v", err)
				}
			}
			if asked, writes := right.received(); asked > 2 || len(writes) != 3 {
				t.Errorf("the right cluster was asked %d times for its identity and got %v, want few questions and 3 writes", asked, writes)
			}

			vip.moveTo(address(wrong))
			err := error(nil)
			for range 5 {
				// The first tries may find the connections that have just ended.
				err = write(t, target)
			}
			var mismatch *IdentityError
			if !errors.As(err, &mismatch) || mismatch.Identity.Seen != "wrong" {
				t.Fatalf("to another cluster: %v", err)
			}
			for _, want := range []string{"registered with ID right", "the cluster with ID wrong", vip.listener.Addr().String(), "kubectl patch cluster m1"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if _, writes := wrong.received(); len(writes) > 0 {
				t.Errorf("the other cluster got %v", writes)
			}
			health := target.Probe(t.Context())
			if health.Healthy || health.Identity.Seen != "wrong" {
				t.Errorf("the probe of another cluster finds %+v", health)
			}

			vip.moveTo(address(right))
			for range 5 {
				if err = write(t, target); err == nil {
					break
				}
			}
			if err != nil {
				t.Errorf("to the right cluster again: %v", err)
			}
			if diff := cmp.Diff(Health{Reachable: true, Healthy: true, Identity: domain.Identity{Proven: true}}, target.Probe(t.Context())); diff != "" {
				t.Errorf("the probe of the right cluster (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingIsSentToAClusterThatCannotBeIdentified(t *testing.T) {
	secretive, vip := serveIdentity(t, "", true), newVirtualIP(t)
	vip.moveTo(address(secretive))
	target := guarded(t, vip, "right")
	var unknown *IdentityError
	if err := write(t, target); !errors.As(err, &unknown) || unknown.Identity.Unknown == "" || !strings.Contains(err.Error(), "403 Forbidden; let the account of Karmada in the member get that Namespace") {
		t.Errorf("got %v", err)
	}
	if _, writes := secretive.received(); len(writes) > 0 {
		t.Errorf("it got %v", writes)
	}
	if health := target.Probe(t.Context()); health.Healthy || health.Identity.Unknown == "" {
		t.Errorf("the probe finds %+v", health)
	}
}

func TestAClusterThatWasRegisteredWithoutAnIDIsNotAsked(t *testing.T) {
	secretive, vip := serveIdentity(t, "", true), newVirtualIP(t)
	vip.moveTo(address(secretive))
	target := guarded(t, vip, "")
	if err := write(t, target); err != nil {
		t.Error(err)
	}
	if asked, _ := secretive.received(); asked > 0 || !target.Probe(t.Context()).Healthy {
		t.Errorf("it was asked %d times for its identity", asked)
	}
}

func TestAPersonAcceptsAnotherCluster(t *testing.T) {
	wrong, vip := serveIdentity(t, "wrong", true), newVirtualIP(t)
	vip.moveTo(address(wrong))
	w := newWorld(t, newAPIServer(t, "token"), "token")
	w.cluster.Spec.APIEndpoint = "https://" + vip.listener.Addr().String()
	for _, id := range []string{"right", "wrong"} {
		w.cluster.Spec.ID = id
		if err := w.karmada.Update(t.Context(), w.cluster); err != nil {
			t.Fatal(err)
		}
		if err := write(t, w.get(t)); (err == nil) != (id == "wrong") {
			t.Errorf("with spec.id %q: %v", id, err)
		}
	}
}
