package member

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

var widgetKind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}

// crdServer is an API server that serves one custom kind and one object of this kind, until the
// definition of the kind is removed.
type crdServer struct {
	*httptest.Server

	mu        sync.Mutex
	isRemoved bool
	// isUnavailable is true if the list of groups contains the group version, but the server of the
	// group version does not respond.
	isUnavailable bool
	// watches is closed to end the watches.
	watches chan struct{}
	// lists counts the requests for the kind. reviews counts the requests for its group version.
	lists, reviews int
}

func newCRDServer(t *testing.T) *crdServer {
	d := &crdServer{watches: make(chan struct{})}
	d.Server = httptest.NewServer(d)
	t.Cleanup(func() { d.CloseClientConnections(); d.Close() })
	return d
}

// set changes the state of the definition and ends the watches of the kind, as an API server does
// when a definition is removed.
func (c *crdServer) set(removed, failing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isRemoved, c.isUnavailable = removed, failing
	close(c.watches)
	c.watches = make(chan struct{})
}

func (c *crdServer) requestCounts() (lists, reviews int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists, c.reviews
}

func (c *crdServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	absent, failing, watches := c.isRemoved || c.isUnavailable, c.isUnavailable, c.watches
	switch {
	case strings.HasSuffix(r.URL.Path, "/widgets"):
		c.lists++
	case r.URL.Path == "/apis/example.org/v1":
		c.reviews++
	}
	c.mu.Unlock()
	group := metav1.APIGroup{Name: "example.org", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "example.org/v1", Version: "v1"}}}
	apps := metav1.APIGroup{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "apps/v1", Version: "v1"}}}
	switch {
	case r.URL.Path == "/api":
		writeJSON(w, http.StatusOK, metav1.APIVersions{})
	case r.URL.Path == "/apis" && absent && !failing:
		writeJSON(w, http.StatusOK, metav1.APIGroupList{Groups: []metav1.APIGroup{apps}})
	case r.URL.Path == "/apis":
		writeJSON(w, http.StatusOK, metav1.APIGroupList{Groups: []metav1.APIGroup{apps, group}})
	case failing && r.URL.Path == "/apis/example.org/v1":
		writeJSON(w, http.StatusServiceUnavailable, apierrors.NewServiceUnavailable("no endpoints").Status())
	case absent:
		writeJSON(w, http.StatusNotFound, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "", 0, true).Status())
	case r.URL.Path == "/apis/example.org/v1":
		writeJSON(w, http.StatusOK, metav1.APIResourceList{GroupVersion: "example.org/v1", APIResources: []metav1.APIResource{
			{Name: "widgets", Kind: "Widget", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}},
		}})
	case r.URL.Query().Get("sendInitialEvents") != "":
		writeJSON(w, http.StatusUnprocessableEntity, apierrors.NewInvalid(schema.GroupKind{}, "", nil).Status())
	case r.URL.Query().Get("watch") != "":
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush() // a server's writer is one
		select {
		case <-watches:
		case <-r.Context().Done():
		}
	default:
		one := unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "one", "namespace": "a", "resourceVersion": "1", "labels": map[string]any{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue}}}}
		one.SetGroupVersionKind(widgetKind)
		writeJSON(w, http.StatusOK, map[string]any{
			"apiVersion": "example.org/v1", "kind": "WidgetList", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{one.Object},
		})
	}
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// observedMember is a member whose notifications are recorded.
type observedMember struct {
	*Member
	events        chan string
	restoredKinds chan string
}

func openObservedMember(t *testing.T, url string) *observedMember {
	t.Helper()
	o := &observedMember{events: make(chan string, 100), restoredKinds: make(chan string, 100)}
	o.Member = openWith(t, "m1", &rest.Config{Host: url, QPS: -1}, &managedWatches{
		notify: func(e Event) {
			o.events <- fmt.Sprintf("%s initial %t, deleted %t", e.Object().GetName(), e.Initial, e.New == nil)
		},
		onRestored: func(kind schema.GroupVersionKind) { o.restoredKinds <- kind.Kind },
	})
	return o
}

func (o *observedMember) expectNext(t *testing.T, from <-chan string, want string) {
	t.Helper()
	select {
	case got := <-from:
		if got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("%q did not arrive", want)
	}
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal(what + ": not reached within the time limit")
		}
	}
}

const initialEvent = "one initial true, deleted false"

func TestWatchEndsAndReturnsWithDefinition(t *testing.T) {
	server := newCRDServer(t)
	o := openObservedMember(t, server.URL)
	if err := o.Watch(widgetKind); err != nil {
		t.Fatal(err)
	}
	o.expectNext(t, o.events, initialEvent)
	key := client.ObjectKey{Namespace: "a", Name: "one"}

	server.set(false, true)
	waitFor(t, "discovery fails several times", func() bool { _, reviews := server.requestCounts(); return reviews > 3 })
	if object, cached, err := o.Get(t.Context(), widgetKind, key); err != nil || !cached || object == nil {
		t.Errorf("%v, cached %t, %v, want the cached object", object, cached, err)
	}

	server.set(true, false)
	waitFor(t, "the watch ends", func() bool { return meta.IsNoMatchError(o.Watch(widgetKind)) })
	lists, _ := server.requestCounts()
	if _, _, err := o.Get(t.Context(), widgetKind, key); !meta.IsNoMatchError(err) {
		t.Errorf("reading an object of the kind: %v, want NoKindMatch", err)
	}
	_, reviews := server.requestCounts()
	waitFor(t, "discovery is read again", func() bool {
		_, more := server.requestCounts()
		return meta.IsNoMatchError(o.Watch(widgetKind)) && more > reviews+2
	})
	if more, _ := server.requestCounts(); more != lists {
		t.Errorf("%d lists and watches after the watch ended", more-lists)
	}

	server.set(false, false)
	waitFor(t, "the kind can be watched", func() bool { return o.Watch(widgetKind) == nil })
	o.expectNext(t, o.restoredKinds, "Widget")
	if object, cached, err := o.Get(t.Context(), widgetKind, key); err != nil || !cached || object.GetName() != "one" {
		t.Errorf("%v, cached %t, %v, want the object from the cache", object, cached, err)
	}
	if diff := cmp.Diff([]string{}, drain(o.events)); diff != "" {
		t.Errorf("other events: %s", diff)
	}
}

func drain(from <-chan string) []string {
	all := []string{}
	for {
		select {
		case one := <-from:
			all = append(all, one)
		default:
			return all
		}
	}
}
