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

// definitions is a server that has one definition of a kind, with one object, until
// the definition is removed.
type definitions struct {
	*httptest.Server

	mu      sync.Mutex
	removed bool
	// failing says that the group version is in the list of groups, and that what
	// stands behind it does not answer.
	failing bool
	// watches end when closed.
	watches chan struct{}
	// asked counts requests for the kind and for its group version.
	lists, reviews int
}

func newDefinitions(t *testing.T) *definitions {
	d := &definitions{watches: make(chan struct{})}
	d.Server = httptest.NewServer(d)
	t.Cleanup(func() { d.CloseClientConnections(); d.Close() })
	return d
}

// set changes what is served. Watches of the kind end, as when a definition is removed.
func (d *definitions) set(removed, failing bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removed, d.failing = removed, failing
	close(d.watches)
	d.watches = make(chan struct{})
}

func (d *definitions) counts() (lists, reviews int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lists, d.reviews
}

func (d *definitions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	absent, failing, watches := d.removed || d.failing, d.failing, d.watches
	switch {
	case strings.HasSuffix(r.URL.Path, "/widgets"):
		d.lists++
	case r.URL.Path == "/apis/example.org/v1":
		d.reviews++
	}
	d.mu.Unlock()
	group := metav1.APIGroup{Name: "example.org", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "example.org/v1", Version: "v1"}}}
	apps := metav1.APIGroup{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "apps/v1", Version: "v1"}}}
	switch {
	case r.URL.Path == "/api":
		answer(w, http.StatusOK, metav1.APIVersions{})
	case r.URL.Path == "/apis" && absent && !failing:
		answer(w, http.StatusOK, metav1.APIGroupList{Groups: []metav1.APIGroup{apps}})
	case r.URL.Path == "/apis":
		answer(w, http.StatusOK, metav1.APIGroupList{Groups: []metav1.APIGroup{apps, group}})
	case failing && r.URL.Path == "/apis/example.org/v1":
		answer(w, http.StatusServiceUnavailable, apierrors.NewServiceUnavailable("no endpoints").Status())
	case absent:
		answer(w, http.StatusNotFound, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "", 0, true).Status())
	case r.URL.Path == "/apis/example.org/v1":
		answer(w, http.StatusOK, metav1.APIResourceList{GroupVersion: "example.org/v1", APIResources: []metav1.APIResource{
			{Name: "widgets", Kind: "Widget", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}},
		}})
	case r.URL.Query().Get("sendInitialEvents") != "":
		answer(w, http.StatusUnprocessableEntity, apierrors.NewInvalid(schema.GroupKind{}, "", nil).Status())
	case r.URL.Query().Get("watch") != "":
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush() //nolint:forcetypeassert // a server's writer is one
		select {
		case <-watches:
		case <-r.Context().Done():
		}
	default:
		one := unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "one", "namespace": "a", "resourceVersion": "1", "labels": map[string]any{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue}}}}
		one.SetGroupVersionKind(widgetKind)
		answer(w, http.StatusOK, map[string]any{
			"apiVersion": "example.org/v1", "kind": "WidgetList", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{one.Object},
		})
	}
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// observer is a member whose news are kept.
type observer struct {
	*Member
	events  chan string
	returns chan string
}

func observing(t *testing.T, url string) *observer {
	t.Helper()
	o := &observer{events: make(chan string, 100), returns: make(chan string, 100)}
	alive := &liveness{lost: func(string) {}, recovered: func(string) {}}
	var err error
	o.Member, err = open(t.Context(), "m1", &rest.Config{Host: url, QPS: -1}, nil, alive, &credentials{}, func(e Event) {
		o.events <- fmt.Sprintf("%s initial %t, gone %t", e.Object().GetName(), e.Initial, e.New == nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	o.returned = func(kind schema.GroupVersionKind) { o.returns <- kind.Kind }
	o.kinds.patience, o.kinds.pause = 200*time.Millisecond, 20*time.Millisecond
	t.Cleanup(o.close)
	return o
}

func (o *observer) next(t *testing.T, from <-chan string, want string) {
	t.Helper()
	select {
	case got := <-from:
		if got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("%q did not come", want)
	}
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal(what + ": still not so after the time limit")
		}
	}
}

func (o *observer) isEnded() bool {
	o.kinds.mu.Lock()
	defer o.kinds.mu.Unlock()
	return o.kinds.watched[widgetKind].state.Ended
}

const appeared = "one initial true, gone false"

func TestTheWatchOfAKindLastsAsLongAsItsDefinition(t *testing.T) {
	server := newDefinitions(t)
	o := observing(t, server.URL)
	if err := o.Watch(t.Context(), widgetKind); err != nil {
		t.Fatal(err)
	}
	o.next(t, o.events, appeared)

	informer := o.kinds.watched[widgetKind].informer
	server.set(true, false)
	await(t, "the watch ends", func() bool { return o.isEnded() && informer.IsStopped() })
	lists, reviews := server.counts()
	key := client.ObjectKey{Namespace: "a", Name: "one"}
	if _, _, err := o.Get(t.Context(), widgetKind, key); !meta.IsNoMatchError(err) {
		t.Errorf("reading an object of the kind: %v, want that the kind is not served", err)
	}
	if err := o.Watch(t.Context(), widgetKind); !meta.IsNoMatchError(err) {
		t.Errorf("watching the kind: %v, want that the kind is not served", err)
	}
	await(t, "discovery is asked again", func() bool { _, more := server.counts(); return more > reviews+3 })
	if more, _ := server.counts(); more != lists {
		t.Errorf("%d lists and watches after the end", more-lists)
	}

	server.set(false, false)
	o.next(t, o.returns, "Widget")
	o.next(t, o.events, appeared)
	o.AwaitSync(t.Context(), widgetKind, 30*time.Second)
	if object, cached, err := o.Get(t.Context(), widgetKind, key); err != nil || !cached || object.GetName() != "one" {
		t.Errorf("%v, cached %t, %v, want the object from the cache", object, cached, err)
	}
	if diff := cmp.Diff([]string{}, drained(o.events)); diff != "" {
		t.Errorf("other events: %s", diff)
	}
}

func TestAWorkThatWantsAKindBeginsItsWatchAgain(t *testing.T) {
	server := newDefinitions(t)
	o := observing(t, server.URL)
	if err := o.Watch(t.Context(), widgetKind); err != nil {
		t.Fatal(err)
	}
	o.next(t, o.events, appeared)
	server.set(true, false)
	await(t, "the watch ends", o.isEnded)
	o.kinds.mu.Lock()
	o.kinds.watched[widgetKind].pause = time.Hour // no review comes by itself
	o.kinds.mu.Unlock()
	server.set(false, false)
	await(t, "the kind can be watched", func() bool { return o.Watch(t.Context(), widgetKind) == nil })
	o.next(t, o.returns, "Widget")
	o.next(t, o.events, appeared)
}

func TestTheWatchOfAKindWhoseServerIsUnavailableGoesOn(t *testing.T) {
	server := newDefinitions(t)
	o := observing(t, server.URL)
	if err := o.Watch(t.Context(), widgetKind); err != nil {
		t.Fatal(err)
	}
	o.next(t, o.events, appeared)
	server.set(false, true)
	await(t, "discovery is asked often", func() bool { _, reviews := server.counts(); return reviews > 6 })
	if o.isEnded() {
		t.Fatal("the watch ended though nothing says that the kind is gone")
	}
	if object, cached, err := o.Get(t.Context(), widgetKind, client.ObjectKey{Namespace: "a", Name: "one"}); err != nil || !cached || object == nil {
		t.Errorf("%v, cached %t, %v, want what was seen last", object, cached, err)
	}
	server.set(false, false)
	await(t, "the kind is not in doubt", func() bool {
		o.kinds.mu.Lock()
		defer o.kinds.mu.Unlock()
		return !o.kinds.watched[widgetKind].doubted
	})
	for _, event := range drained(o.events) {
		if strings.HasSuffix(event, "gone true") {
			t.Errorf("an object is said to be gone: %s", event)
		}
	}
}

func drained(from <-chan string) []string {
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
