package query

import (
	"bufio"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

// client reads a watch's events.
type client struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Scanner
}

type clientEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// startWatch begins a watch on a real server. The watch ends with the test.
func startWatch(t *testing.T, h *Handler, parameters ...string) *client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { h.ServeQuery(w, req, alice) }))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/?"+encode(append(parameters, "watch", "true")...), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		t.Fatalf("status %s", response.Status)
	}
	return &client{t: t, response: response, lines: bufio.NewScanner(response.Body)}
}

// next returns the next event, or false at the watch's end.
func (c *client) next() (clientEvent, bool) {
	c.t.Helper()
	if !c.lines.Scan() {
		return clientEvent{}, false
	}
	var event clientEvent
	if err := json.Unmarshal(c.lines.Bytes(), &event); err != nil {
		c.t.Fatal(err)
	}
	return event, true
}

// want reads events and compares them with the given ones.
func (c *client) want(events ...string) {
	c.t.Helper()
	var got []string
	for range events {
		event, ok := c.next()
		if !ok {
			break
		}
		var item searchv1alpha1.SearchResult
		if err := json.Unmarshal(event.Object, &item); err != nil {
			c.t.Fatal(err)
		}
		got = append(got, event.Type+" "+describeItem(item))
	}
	if diff := cmp.Diff(events, got); diff != "" {
		c.t.Fatal(diff)
	}
}

// itemEvent is an event about an object.
type itemEvent struct {
	eventType string
	item      searchv1alpha1.SearchResult
}

// events returns the events about objects until the watch ends.
func (c *client) events() iter.Seq[itemEvent] {
	return func(yield func(itemEvent) bool) {
		for event, more := c.next(); more; event, more = c.next() {
			var item searchv1alpha1.SearchResult
			if err := json.Unmarshal(event.Object, &item); err != nil {
				c.t.Fatal(err)
			}
			if !yield(itemEvent{event.Type, item}) {
				return
			}
		}
	}
}

// wantExpired reads the error that ends the watch.
func (c *client) wantExpired(message string) {
	c.t.Helper()
	event, _ := c.next()
	status := &metav1.Status{}
	if err := json.Unmarshal(event.Object, status); err != nil {
		c.t.Fatal(err)
	}
	if event.Type != "ERROR" || status.Code != http.StatusGone || status.Reason != metav1.StatusReasonExpired || status.Kind != "Status" ||
		!containsText(status.Message, message) {
		c.t.Errorf("the watch ends with %s %s", event.Type, event.Object)
	}
	if event, more := c.next(); more {
		c.t.Errorf("after the error, there is the event %v", event)
	}
}

func TestWatchSendsCurrentMatchesAndThenChanges(t *testing.T) {
	cache := newCache(t)
	c := startWatch(t, newHandler(cache, &fakePermissions{}), "q", "nginx ns=shop kind:Pod")
	c.want("ADDED m1/shop/web/Pod", "ADDED m2/shop/web/Pod")
	web := func(image string) { cache.Put("m1", newObject(objectcachetest.Pods, "shop", "web", nil, image)) }
	web("nginx:2")
	c.want("MODIFIED m1/shop/web/Pod")
	web("apache:2")
	c.want("DELETED m1/shop/web/Pod")
	web("apache:3")
	web("nginx:3")
	c.want("ADDED m1/shop/web/Pod")
	cache.Put("m1", newObject(objectcachetest.Pods, "blog", "x", nil, "nginx"), newObject(objectcachetest.Deployments, "shop", "x", nil, "nginx"))
	cache.Delete("m2", newObject(objectcachetest.Pods, "shop", "web", nil, ""))
	c.want("DELETED m2/shop/web/Pod")
	cache.Put("m9", newObject(objectcachetest.Pods, "shop", "new", nil, "nginx:4"))
	c.want("ADDED m9/shop/new/Pod")
	cache.RemoveCluster("m9", objectcachetest.Pods)
	c.want("DELETED m9/shop/new/Pod")
}

func TestWatchFollowsKindsThatComeAndGo(t *testing.T) {
	cache := newCache(t)
	c := startWatch(t, newHandler(cache, &fakePermissions{}), "q", "nginx cluster=m1 -ns=blog")
	c.want("ADDED m1/shop/web/Deployment", "ADDED m1/shop/web/Pod")
	cache.AddKind(objectcachetest.ConfigMaps)
	cache.Put("m1", newObject(objectcachetest.ConfigMaps, "shop", "config", nil, "nginx"))
	c.want("ADDED m1/shop/config/ConfigMap")
	cache.RemoveKind(objectcachetest.Deployments.GroupVersionKind)
	c.want("DELETED m1/shop/web/Deployment")
	cache.Put("m1", newObject(objectcachetest.ConfigMaps, "shop", "config", nil, "nginx:2"))
	c.want("MODIFIED m1/shop/config/ConfigMap")
}

func TestWatchShowsOnlyWhatTheCallerMayRead(t *testing.T) {
	cache := newCache(t)
	allowed := &fakePermissions{denied: []string{"m1/pods/*", "m1/pods/blog"}, hanging: []string{"m2"}}
	c := startWatch(t, newHandler(cache, allowed), "q", "kind:Pod image:nginx")
	c.want("ADDED m1/shop/web/Pod")
	if warnings := c.response.Header["Warning"]; len(warnings) != 2 {
		t.Errorf("warnings %q, want one for each cluster", warnings)
	}
	cache.Put("m2", newObject(objectcachetest.Pods, "shop", "other", nil, "nginx"))
	cache.Put("m1", newObject(objectcachetest.Pods, "blog", "hidden", nil, "nginx"), newObject(objectcachetest.Pods, "shop", "shown", nil, "nginx"))
	c.want("ADDED m1/shop/shown/Pod")
}

// TestWatchEndsIfAChangeCannotBeReviewed checks that a watch does not silently hide a change because a
// review fails. All decisions from the start have expired when the change occurs.
func TestWatchEndsIfAChangeCannotBeReviewed(t *testing.T) {
	tests := map[string]struct {
		denied []string
		// before and after are the reviews that fail at the start and later, respectively.
		before, after []string
		// changed contains the namespace and name of the Pod in m1 that changes.
		changed [2]string
		want    string // "" means that the change is hidden
	}{
		"the review for all namespaces fails": {after: []string{"m1"}, changed: [2]string{"shop", "web"},
			want: `changes of pods in cluster "m1" are lost, because the permissions of user "alice" cannot be reviewed: watch again: connection refused`},
		"it fails, whatever object changes": {after: []string{"m1"}, changed: [2]string{"shop", "other"},
			want: `changes of pods in cluster "m1" are lost`},
		"the review for the namespace fails": {denied: []string{"m1/pods/*"}, after: []string{"m1/pods/shop"}, changed: [2]string{"shop", "web"},
			want: `changes of pods in cluster "m1" are lost`},
		"the review of a namespace without matches is not needed": {denied: []string{"m1/pods/*"}, after: []string{"m1/pods/shop"}, changed: [2]string{"shop", "other"}},
		"a denial": {denied: []string{"m1/pods"}, changed: [2]string{"shop", "web"}},
		"a cluster that was omitted is still omitted": {before: []string{"m1"}, after: []string{"m1"}, changed: [2]string{"shop", "web"}},
		"a cluster that was omitted responds again": {before: []string{"m1"}, changed: [2]string{"shop", "web"},
			want: `cluster "m1", which was omitted, responds again: watch again to see its pods`},
		"a namespace that was omitted is still omitted": {denied: []string{"m1/pods/*"}, before: []string{"m1/pods/shop"}, after: []string{"m1/pods/shop"}, changed: [2]string{"shop", "web"}},
		"a namespace that was omitted responds again": {denied: []string{"m1/pods/*"}, before: []string{"m1/pods/shop"}, changed: [2]string{"shop", "web"},
			want: `cluster "m1", which was omitted, responds again`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cache := newCache(t)
			allowed := &fakePermissions{denied: test.denied, failing: test.before}
			handler := newHandler(cache, allowed)
			var passed atomic.Int64
			handler.now = func() time.Time { return now.Add(time.Duration(passed.Load())) }
			c := startWatch(t, handler, "q", "kind:Pod name=web ns=shop")
			for event := range c.events() {
				if event.item.Cluster == "m2" {
					break // it is the last initial match
				}
			}
			allowed.fail(test.after...)
			passed.Store(int64(time.Minute))
			cache.Put("m1", newObject(objectcachetest.Pods, test.changed[0], test.changed[1], nil, "nginx:2"))
			if test.want != "" {
				c.wantExpired(test.want)
				return
			}
			cache.Put("m2", newObject(objectcachetest.Pods, "shop", "web", nil, "nginx:2"))
			c.want("MODIFIED m2/shop/web/Pod")
		})
	}
}

// TestWatchReleasesItsSnapshots checks that an open watch does not keep the objects in memory that
// existed at its start.
func TestWatchReleasesItsSnapshots(t *testing.T) {
	cache := newCache(t)
	c := startWatch(t, newHandler(cache, &fakePermissions{}), "q", "kind:Pod name=web ns=shop cluster=m1")
	c.want("ADDED m1/shop/web/Pod")
	kind := cache.KindOf(objectcachetest.Pods.GroupVersionKind)
	atBegin := weak.Make(kind.Snapshot().Cluster("m1"))
	// The watch sends changes only after all initial matches are written.
	cache.Put("m1", newObject(objectcachetest.Pods, "shop", "web", nil, "nginx:2"))
	c.want("MODIFIED m1/shop/web/Pod")
	if !isCollected(atBegin) {
		t.Error("the watch keeps the objects of its start")
	}
	cache.Put("m1", newObject(objectcachetest.Pods, "shop", "web", nil, "nginx:3"))
	c.want("MODIFIED m1/shop/web/Pod")
}

// isCollected runs the garbage collector and reports whether the value has been freed.
func isCollected[T any](value weak.Pointer[T]) bool {
	for range 10 {
		runtime.GC()
		if value.Value() == nil {
			return true
		}
	}
	return false
}

func TestWatchAsTableSendsColumnsOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		newHandler(newCache(t), &fakePermissions{}).ServeQuery(w, req, alice)
	}))
	defer server.Close()
	response, err := http.Get(server.URL + "/?" + encode("q", "kind:Pod image:nginx ns=shop", "watch", "true", "timeoutSeconds", "1"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	c := &client{t: t, lines: bufio.NewScanner(response.Body)}
	for _, columns := range []int{6, 0} {
		event, _ := c.next()
		table := &metav1.Table{}
		if err := json.Unmarshal(event.Object, table); err != nil {
			t.Fatal(err)
		}
		if len(table.ColumnDefinitions) != columns || len(table.Rows) != 1 {
			t.Errorf("a table with %d columns and %d rows, want %d columns and 1 row", len(table.ColumnDefinitions), len(table.Rows), columns)
		}
	}
	if event, more := c.next(); more {
		t.Errorf("after the timeout, there is the event %v", event)
	}
}

func TestIdleWatchOverHTTP2GoesOn(t *testing.T) {
	cache := newCache(t)
	handler := newHandler(cache, &fakePermissions{})
	handler.writeTimeout = time.Second
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { handler.ServeQuery(w, req, alice) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/?"+encode("q", "kind:Node", "watch", "true"), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 {
		t.Fatalf("the protocol is %s", response.Proto)
	}
	c := &client{t: t, response: response, lines: bufio.NewScanner(response.Body)}
	c.want("ADDED m1//node-1/Node")
	<-time.After(handler.writeTimeout + 200*time.Millisecond)
	cache.Put("m1", newObject(objectcachetest.Nodes, "", "node-2", nil, ""))
	c.want("ADDED m1//node-2/Node")
}

// slowWriter is a client that does not read until it is released.
type slowWriter struct {
	*httptest.ResponseRecorder
	writes   sync.Once
	blocked  chan struct{}
	released chan struct{}
}

func (s *slowWriter) Write(b []byte) (int, error) {
	s.writes.Do(func() { close(s.blocked) })
	<-s.released
	return s.ResponseRecorder.Write(b)
}

func TestWatchThatFallsBehindEndsWithExpired(t *testing.T) {
	cache := objectcachetest.NewWithOptions(t, objectcache.Options{LogEvents: 8}, objectcachetest.Pods)
	pod := func(image string) { cache.Put("m1", newObject(objectcachetest.Pods, "shop", "web", nil, image)) }
	pod("nginx:1")
	w := &slowWriter{ResponseRecorder: httptest.NewRecorder(), blocked: make(chan struct{}), released: make(chan struct{})}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+encode("q", "nginx", "watch", "true"), nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		newHandler(cache, &fakePermissions{}).ServeQuery(w, req, alice)
	}()
	<-w.blocked
	for range 100 {
		pod("nginx:2")
	}
	close(w.released)
	<-done
	c := &client{t: t, lines: bufio.NewScanner(w.Body)}
	c.want("ADDED m1/shop/web/Pod")
	c.wantExpired("the changes since the last event are not known any more")
}

func TestWatchEndsWithItsRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := httptest.NewRecorder()
	done := make(chan struct{})
	handler := newHandler(newCache(t), &fakePermissions{})
	go func() {
		defer close(done)
		handler.ServeQuery(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/?"+encode("q", "*", "watch", "1"), nil), alice)
	}()
	cancel()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the watch does not end")
	}
}
