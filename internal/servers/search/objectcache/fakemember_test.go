package objectcache_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fakeMember is an API server that serves lists in pages, watches with history, and bookmarks.
type fakeMember struct {
	*httptest.Server

	mu sync.Mutex
	// kinds are the served kinds by resource.
	kinds   map[string]metav1.APIResource
	version int
	objects map[string]map[string]*unstructured.Unstructured
	history []memberEvent
	oldest  int
	changed chan struct{}
	// watched is closed at the next watch.
	watched  chan struct{}
	broken   chan struct{}
	closed   chan struct{}
	isSilent bool
	// isHanging is true if lists get no response.
	isHanging bool
	refusal   int
	lists     map[string]int
	watches   map[string]int
	probes    int
	// expireAt makes the page that begins with this object expire once.
	expireAt int
	// limits are the page sizes of all requests for lists of the watch.
	limits []int
}

type memberEvent struct {
	resource string
	version  int
	Type     string         `json:"type"`
	Object   map[string]any `json:"object"`
}

func newFakeMember(t testing.TB) *fakeMember {
	t.Helper()
	m := &fakeMember{
		kinds: map[string]metav1.APIResource{}, version: 100, oldest: 100, objects: map[string]map[string]*unstructured.Unstructured{},
		changed: make(chan struct{}), watched: make(chan struct{}), broken: make(chan struct{}), closed: make(chan struct{}), lists: map[string]int{}, watches: map[string]int{},
	}
	m.serve("configmaps", "ConfigMap", true)
	m.serve("secrets", "Secret", true)
	m.serve("nodes", "Node", false)
	m.Server = httptest.NewTLSServer(m)
	t.Cleanup(func() {
		close(m.closed)
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

// serve makes the member serve a kind of the group version v1.
func (m *fakeMember) serve(resource, kind string, namespaced bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kinds[resource] = metav1.APIResource{Name: resource, Kind: kind, Namespaced: namespaced, Verbs: metav1.Verbs{"get", "list", "watch"}}
}

func (m *fakeMember) unserve(resource string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.kinds, resource)
}

func (m *fakeMember) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// put creates or changes an object. value becomes its data.
func (m *fakeMember) put(resource, namespace, name, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version++
	if m.objects[resource] == nil {
		m.objects[resource] = map[string]*unstructured.Unstructured{}
	}
	key, eventType := namespace+"/"+name, "ADDED"
	uid := fmt.Sprintf("%08x-0000-4000-8000-000000000000", m.version)
	if old := m.objects[resource][key]; old != nil {
		eventType, uid = "MODIFIED", string(old.GetUID())
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": m.kinds[resource].Kind, "data": map[string]any{"key": value},
		"metadata": map[string]any{
			"name": name, "uid": uid, "resourceVersion": strconv.Itoa(m.version), "creationTimestamp": "2026-01-01T00:00:00Z",
			"labels": map[string]any{"value": value}, "managedFields": []any{map[string]any{"manager": "kubectl"}},
		},
	}}
	if namespace != "" {
		object.SetNamespace(namespace)
	}
	m.objects[resource][key] = object
	m.record(resource, eventType, object)
}

// fill changes the data of an object without an event.
func (m *fakeMember) fill(resource, namespace, name, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[resource][namespace+"/"+name].Object["data"] = map[string]any{"key": value}
}

func (m *fakeMember) record(resource, eventType string, object *unstructured.Unstructured) {
	m.history = append(m.history, memberEvent{resource: resource, version: m.version, Type: eventType, Object: object.DeepCopy().Object})
	m.wake()
}

func (m *fakeMember) remove(resource, namespace, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	object := m.objects[resource][namespace+"/"+name].DeepCopy()
	delete(m.objects[resource], namespace+"/"+name)
	m.version++
	object.SetResourceVersion(strconv.Itoa(m.version))
	m.record(resource, "DELETED", object)
}

// bookmark sends a bookmark with a new version to the watches of a resource.
func (m *fakeMember) bookmark(resource string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version++
	bookmark := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": m.kinds[resource].Kind}}
	bookmark.SetResourceVersion(strconv.Itoa(m.version))
	m.record(resource, "BOOKMARK", bookmark)
	return strconv.Itoa(m.version)
}

// breakWatches ends all connections of watches. compact forgets the history.
func (m *fakeMember) breakWatches(compact bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if compact {
		m.history, m.oldest = nil, m.version
	}
	close(m.broken)
	m.broken = make(chan struct{})
}

// restore sets the numbering back to a lower version.
func (m *fakeMember) restore(version int) {
	m.mu.Lock()
	m.version, m.oldest, m.history = version, version, nil
	m.mu.Unlock()
	m.breakWatches(false)
}

// setSilent makes the member accept requests and never respond. setRefusal makes it respond with a code.
func (m *fakeMember) setSilent(silent bool) {
	m.mu.Lock()
	m.isSilent = silent
	m.mu.Unlock()
	m.breakWatches(false)
}

func (m *fakeMember) setRefusal(code int) {
	m.mu.Lock()
	m.refusal = code
	m.mu.Unlock()
	m.breakWatches(false)
}

func (m *fakeMember) hangLists() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isHanging = true
}

// awaitWatch waits until a resource was watched.
func (m *fakeMember) awaitWatch(t testing.TB, resource string) {
	t.Helper()
	for {
		m.mu.Lock()
		watched, count := m.watched, m.watches[resource]
		m.mu.Unlock()
		if count > 0 {
			return
		}
		select {
		case <-watched:
		case <-time.After(patience):
			t.Fatalf("%s are not watched", resource)
		}
	}
}

func (m *fakeMember) counts(resource string) (lists, watches int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lists[resource], m.watches[resource]
}

// ServeHTTP implements http.Handler.
func (m *fakeMember) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	silent, refusal := m.isSilent || m.isHanging && r.URL.Path != "/api/v1", m.refusal
	m.mu.Unlock()
	if silent {
		select {
		case <-m.closed:
		case <-r.Context().Done():
		}
		return
	}
	if refusal != 0 {
		http.Error(w, "the member refuses", refusal)
		return
	}
	resource := strings.TrimPrefix(r.URL.Path, "/api/v1/")
	switch {
	case r.URL.Path == "/api/v1":
		m.serveDiscovery(w)
	case !m.has(resource):
		http.NotFound(w, r)
	case r.URL.Query().Get("watch") != "":
		m.serveWatch(w, r, resource)
	default:
		m.serveList(w, r, resource)
	}
}

func (m *fakeMember) has(resource string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := m.kinds[resource]
	return found
}

func (m *fakeMember) serveDiscovery(w http.ResponseWriter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	writeJSON(w, metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
		APIResources: slices.Collect(maps.Values(m.kinds)),
	})
}

func writeJSON(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func (m *fakeMember) serveList(w http.ResponseWriter, r *http.Request, resource string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.Sorted(maps.Keys(m.objects[resource]))
	first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	if limit == 1 {
		m.probes++
	} else if first == 0 {
		m.lists[resource]++
	}
	m.limits = append(m.limits, limit)
	if first > 0 && first == m.expireAt && limit != 1 {
		m.expireAt = 0
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGone)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonExpired, Code: http.StatusGone,
			ListMeta: metav1.ListMeta{Continue: strconv.Itoa(first)},
		})
		return
	}
	metadata, items := map[string]any{"resourceVersion": strconv.Itoa(m.version)}, []any{}
	for i := first; i < len(keys); i++ {
		if limit > 0 && i == first+limit {
			metadata["continue"] = strconv.Itoa(i)
			break
		}
		items = append(items, m.objects[resource][keys[i]].Object)
	}
	writeJSON(w, map[string]any{"apiVersion": "v1", "kind": m.kinds[resource].Kind + "List", "metadata": metadata, "items": items})
}

func (m *fakeMember) serveWatch(w http.ResponseWriter, r *http.Request, resource string) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	m.mu.Lock()
	m.watches[resource]++
	close(m.watched)
	m.watched = make(chan struct{})
	oldest, broken := m.oldest, m.broken
	m.mu.Unlock()
	if from < oldest {
		_ = encoder.Encode(map[string]any{"type": "ERROR", "object": metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonExpired, Code: http.StatusGone,
		}})
		return
	}
	_ = http.NewResponseController(w).Flush()
	for {
		m.mu.Lock()
		changed, events := m.changed, slices.Clone(m.history)
		m.mu.Unlock()
		for _, event := range events {
			if event.resource == resource && event.version > from {
				from = event.version
				_ = encoder.Encode(event)
			}
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-changed:
		case <-broken:
			return
		case <-m.closed:
			return
		case <-r.Context().Done():
			return
		}
	}
}
