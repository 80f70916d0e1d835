package proxying_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"

	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
	"karmada.io/karmada/internal/servers/search/proxying"
)

// watcher reads a watch's events over HTTP.
type watcher struct {
	t      testing.TB
	events *bufio.Scanner
	end    context.CancelFunc
	// version is the last event's version.
	version string
}

// watch begins a watch as alice.
func (f *fixture) watch(path string, change ...func(*http.Request)) *watcher {
	f.t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		f.handler.Serve(w, req, "karmada", req.URL.Path, &user.DefaultInfo{Name: "alice"}, statusWriter{w})
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	f.t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	f.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, c := range change {
		c(req)
	}
	response, err := server.Client().Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = response.Body.Close() })
	scanner := bufio.NewScanner(response.Body)
	scanner.Buffer(nil, 1<<20)
	return &watcher{t: f.t, events: scanner, end: cancel}
}

// statusWriter writes an error as an event, so that tests see it.
type statusWriter struct{ http.ResponseWriter }

func (s statusWriter) Error(err error) {
	status := err.(apierrors.APIStatus).Status()
	encoded, _ := json.Marshal(map[string]any{"type": "REFUSED", "object": map[string]any{"kind": "Status", "apiVersion": "v1", "reason": status.Reason, "message": status.Message}})
	_, _ = s.Write(append(encoded, '\n'))
}

func (s statusWriter) Object(int, runtime.Object) {}

var _ rest.Responder = statusWriter{}

// next returns the next event as a text.
func (w *watcher) next() string {
	w.t.Helper()
	if !w.events.Scan() {
		return "END"
	}
	var event struct {
		Type   string
		Object unstructured.Unstructured
	}
	if err := json.Unmarshal(w.events.Bytes(), &event); err != nil {
		w.t.Fatalf("%s: %v", w.events.Bytes(), err)
	}
	object := &event.Object
	if object.GetKind() == "Status" {
		return event.Type + " " + fmt.Sprint(object.Object["reason"])
	}
	w.version = object.GetResourceVersion()
	text := event.Type + " " + object.GetAnnotations()["resource.karmada.io/cached-from-cluster"] + " " + object.GetName()
	if object.GetAnnotations()["k8s.io/initial-events-end"] == "true" {
		text = event.Type + " end of initial events"
	}
	return strings.TrimSpace(text)
}

func (w *watcher) expect(want ...string) {
	w.t.Helper()
	for _, event := range want {
		if got := w.next(); got != event {
			w.t.Fatalf("event %q, want %q", got, event)
		}
	}
}

func (w *watcher) expectVersion(want map[string]string) {
	w.t.Helper()
	if diff := cmp.Diff(want, combinedversion.Parse(w.version).Clusters()); diff != "" {
		w.t.Errorf("version:\n%s", diff)
	}
}

func TestWatchBeginsWithTheInitialState(t *testing.T) {
	for _, version := range []string{"", "0", "12345"} {
		f := newFixture(t, "m1", "m2")
		f.put("m1", pod("a", "p1"))
		f.put("m2", pod("a", "p2"))
		w := f.watch("/api/v1/pods?watch=true&resourceVersion=" + version)
		w.expect("ADDED m1 p1", "ADDED m2 p2")
		// An object in the initial state has its plain version. A watch from there gets the whole
		// initial state again, and an update with this version is conditional.
		if w.version != "101" {
			t.Errorf("the version is %s", w.version)
		}
		f.put("m2", pod("a", "p3"))
		w.expect("ADDED m2 p3")
		w.expectVersion(map[string]string{"m1": "101", "m2": "102"})
		f.Delete("m1", f.members["m1"].objects[0])
		w.expect("DELETED m1 p1")
		w.end()
	}
}

func TestWatchFromAList(t *testing.T) {
	f := newFixture(t, "m1", "m2")
	f.put("m1", pod("a", "p1"))
	f.put("m2", pod("a", "p2"))
	list := f.send("/api/v1/pods").list(t)
	f.put("m1", pod("a", "p3"))
	w := f.watch("/api/v1/pods?watch=true&resourceVersion=" + list.GetResourceVersion())
	w.expect("ADDED m1 p3")
	w.expectVersion(map[string]string{"m1": "102", "m2": "101"})
	from := w.version
	w.end()
	f.put("m2", pod("b", "p4"))
	w = f.watch("/api/v1/namespaces/b/pods?watch=true&resourceVersion=" + from)
	w.expect("ADDED m2 p4")
	w.end()
	// A cluster that is not in the list's version begins with its initial state.
	w = f.watch("/api/v1/pods?watch=true&resourceVersion=" + combinedversion.New(map[string]string{"m2": "102"}).String())
	w.expect("ADDED m1 p1", "ADDED m1 p3")
	w.end()
}

func TestWatchSelectors(t *testing.T) {
	f := newFixture(t, "m1")
	f.put("m1", pod("a", "p1", "app", "web"), pod("a", "p2", "app", "db"))
	w := f.watch("/api/v1/pods?watch=true&labelSelector=app%3Dweb")
	w.expect("ADDED m1 p1")
	f.put("m1", pod("a", "p2", "app", "web"))
	w.expect("ADDED m1 p2")
	f.put("m1", pod("a", "p1", "app", "db"))
	w.expect("DELETED m1 p1")
	f.put("m1", pod("a", "p3", "app", "db"), pod("a", "p2", "app", "web"))
	w.expect("MODIFIED m1 p2")
	w.end()
	moved := pod("a", "p2", "app", "web")
	moved.Object["status"] = map[string]any{"phase": "Failed"}
	w = f.watch("/api/v1/pods?watch=true&fieldSelector=status.phase%3DRunning,metadata.name%3Dp2")
	w.expect("ADDED m1 p2")
	f.put("m1", moved)
	w.expect("DELETED m1 p2")
	w.end()
}

func TestWatchWithInitialEvents(t *testing.T) {
	f := newFixture(t, "m1", "m2")
	f.put("m1", pod("a", "p1"))
	f.put("m2", pod("a", "p2"))
	const options = "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	w := f.watch("/api/v1/pods" + options)
	w.expect("ADDED m1 p1", "ADDED m2 p2", "BOOKMARK end of initial events")
	w.expectVersion(map[string]string{"m1": "101", "m2": "101"})
	w.end()
	w = f.watch("/api/v1/pods" + options + "&resourceVersion=" + w.version)
	w.expect("ADDED m1 p1", "ADDED m2 p2", "BOOKMARK end of initial events")
	w.end()
	f.configure(proxying.Limits{Lookup: 50 * time.Millisecond})
	w = f.watch("/api/v1/pods" + options + "&resourceVersion=" + combinedversion.New(map[string]string{"m1": "999"}).String())
	w.expect("REFUSED Timeout")
}

func TestWatchBookmarks(t *testing.T) {
	f := newFixture(t, "m1")
	f.put("m1", pod("a", "p1"))
	f.configure(proxying.Limits{Bookmark: 20 * time.Millisecond})
	w := f.watch("/api/v1/pods?watch=true&allowWatchBookmarks=true")
	w.expect("ADDED m1 p1")
	f.Bookmark("m1", objectcachetest.Pods, "500")
	for w.version != combinedversion.New(map[string]string{"m1": "500"}).String() {
		w.expect("BOOKMARK")
	}
	w.end()
}

// TestIdleWatchIsKept checks that the time limit for clients does not end a watch without events.
func TestIdleWatchIsKept(t *testing.T) {
	f := newFixture(t, "m1")
	f.put("m1", pod("a", "p1"))
	f.configure(proxying.Limits{ClientRead: 50 * time.Millisecond})
	w := f.watch("/api/v1/pods?watch=true")
	w.expect("ADDED m1 p1")
	<-time.After(150 * time.Millisecond)
	f.put("m1", pod("a", "p2"))
	w.expect("ADDED m1 p2")
	w.end()
}

func TestWatchFollowsTheSetOfClusters(t *testing.T) {
	f := newFixture(t, "m1", "m2")
	f.put("m1", pod("a", "p1"))
	w := f.watch("/api/v1/pods?watch=true")
	w.expect("ADDED m1 p1")
	f.put("m2", pod("a", "p2"))
	w.expect("ADDED m2 p2")
	f.RemoveCluster("m1", objectcachetest.Pods)
	w.expect("DELETED m1 p1")
	w.end()
	w = f.watch("/api/v1/pods?watch=true&resourceVersion=" + combinedversion.New(map[string]string{"m1": "101"}).String())
	w.expect("REFUSED Expired")
}

func TestRightsInWatches(t *testing.T) {
	f := newFixture(t, "m1", "m2", "m3")
	f.denied["alice watch pods m1"], f.denied["alice watch pods m3"] = true, true
	f.put("m1", pod("a", "p1"))
	f.put("m2", pod("a", "p2"))
	f.configure(proxying.Limits{Bookmark: 20 * time.Millisecond})
	w := f.watch("/api/v1/pods?watch=true")
	w.expect("ADDED m2 p2")
	f.put("m1", pod("a", "p3"))
	f.put("m3", pod("a", "p4"))
	f.put("m2", pod("a", "p5"))
	w.expect("ADDED m2 p5")
	f.mu.Lock()
	f.denied["alice watch pods m2"] = true
	f.mu.Unlock()
	w.expect("ERROR Expired", "END")
	f.watch("/api/v1/pods?watch=true").expect("REFUSED Forbidden")
}

// TestHiddenClustersAreNotLost checks that a client that watches again receives the events of a cluster
// for which permissions were unknown before.
func TestHiddenClustersAreNotLost(t *testing.T) {
	f := newFixture(t, "m1", "m2")
	f.put("m1", pod("a", "p1"))
	f.put("m2", pod("a", "p2"))
	f.broken["m2"] = true
	f.configure(proxying.Limits{Bookmark: 20 * time.Millisecond})
	w := f.watch("/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=" + combinedversion.New(map[string]string{"m1": "101", "m2": "101"}).String())
	w.expect("BOOKMARK")
	f.put("m2", pod("a", "p3"))
	f.put("m1", pod("a", "p4"))
	for w.next() != "ADDED m1 p4" {
	}
	w.expectVersion(map[string]string{"m1": "102", "m2": "101"})
	from := w.version
	f.mu.Lock()
	f.broken["m2"] = false
	f.mu.Unlock()
	for event := ""; event != "ERROR Expired"; event = w.next() {
		if event == "END" {
			t.Fatal("the watch ended without an error")
		}
	}
	w = f.watch("/api/v1/pods?watch=true&resourceVersion=" + from)
	w.expect("ADDED m2 p3")
	w.end()
}

// TestWatchFromAClusterThatIsNotCached checks that a cluster without a first list does not end the
// other clusters' watches.
func TestWatchFromAClusterThatIsNotCached(t *testing.T) {
	f := newFixture(t, "m1", "m2")
	f.put("m1", pod("a", "p1"))
	f.AddCluster("m2", objectcachetest.Pods)
	f.SetState("m2", objectcachetest.Pods, objectcache.Waiting, "forbidden")
	w := f.watch("/api/v1/pods?watch=true&resourceVersion=" + combinedversion.New(map[string]string{"m1": "101", "m2": "7"}).String())
	f.put("m1", pod("a", "p2"))
	w.expect("ADDED m1 p2")
	w.expectVersion(map[string]string{"m1": "102", "m2": "7"})
	f.put("m2", pod("a", "p3"))
	w.expect("ERROR Expired", "END")
}

func TestWatchExpires(t *testing.T) {
	f := newFixture(t, "m1")
	f.Cache = objectcachetest.NewWithOptions(t, objectcache.Options{LogEvents: 4}, objectcachetest.Pods)
	f.configure(proxying.Limits{})
	f.put("m1", pod("a", "p0"))
	list := f.send("/api/v1/pods").list(t)
	for i := range 20 {
		f.put("m1", pod("a", fmt.Sprintf("q%d", i)))
	}
	f.watch("/api/v1/pods?watch=true&resourceVersion=" + list.GetResourceVersion()).expect("REFUSED Expired")
}

func TestWatchEndsAfterItsTimeout(t *testing.T) {
	f := newFixture(t, "m1")
	f.put("m1", pod("a", "p1"))
	f.watch("/api/v1/pods?watch=true&timeoutSeconds=1").expect("ADDED m1 p1", "END")
}

func TestWatchRefusesYAML(t *testing.T) {
	f := newFixture(t, "m1")
	f.put("m1", pod("a", "p1"))
	f.watch("/api/v1/pods?watch=true", accept("application/yaml")).expect("REFUSED NotAcceptable")
}

func TestWatchedTables(t *testing.T) {
	f := newFixture(t, "m1", "m2")
	f.put("m1", pod("a", "p1"))
	f.put("m2", pod("a", "p2"))
	table := func(name, version string) string {
		return `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"` + version + `"},"rows":[{"cells":["` + name + `"],"object":{"metadata":{"name":"` + name + `"}}}]}`
	}
	f.members["m1"].raw = `{"type":"ADDED","object":` + table("p1", "7") + `}{"type":"BOOKMARK","object":` + table("", "8") + `}`
	f.members["m2"].code = http.StatusForbidden
	w := f.watch("/api/v1/pods?watch=true", accept("application/json;as=Table;v=v1;g=meta.k8s.io"))
	if !w.events.Scan() {
		t.Fatal("the watch ended")
	}
	want := `{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"` + combinedversion.New(map[string]string{"m1": "7"}).String() +
		`"},"rows":[{"cells":["p1","m1"],"object":{"metadata":{"annotations":{"resource.karmada.io/cached-from-cluster":"m1"},"name":"p1"}}}]}}`
	if diff := cmp.Diff(want, w.events.Text()); diff != "" {
		t.Error(diff)
	}
	w.expect("BOOKMARK")
	w.expectVersion(map[string]string{"m1": "8"})
	w.end()
	f.members["m1"].code = http.StatusForbidden
	f.watch("/api/v1/pods?watch=true", accept("application/json;as=Table;v=v1;g=meta.k8s.io")).expect("REFUSED Forbidden")
}
