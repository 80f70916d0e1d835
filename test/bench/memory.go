package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/version"
)

// memoryMember is an API server that keeps its objects in memory. It supports only the
// requests that a member without changes needs, so that one machine can run many. Objects
// can be created, read, listed, watched and deleted, but not updated.
type memoryMember struct {
	*httptest.Server
	// id is the cluster ID, which is the UID of the Namespace kube-system.
	id string
	// discoveryDocuments holds the discovery responses by path.
	discoveryDocuments map[string][]byte

	mu       sync.Mutex
	version  int
	objects  map[string]*unstructured.Unstructured // by path
	watchers map[chan watchEvent]string            // by channel, the path of the collection
}

type watchEvent struct {
	Type   string                     `json:"type"`
	Object *unstructured.Unstructured `json:"object"`
}

// startMemoryMember starts a member with nodes and Pods.
func startMemoryMember(nodes, pods int) (*memoryMember, error) {
	m := &memoryMember{discoveryDocuments: map[string][]byte{}, objects: map[string]*unstructured.Unstructured{},
		watchers: map[chan watchEvent]string{}}
	for root, described := range map[string]apidiscoveryv2.APIGroupDiscoveryList{"/api": coreAPI(), "/apis": customAPIs()} {
		text, err := json.Marshal(described)
		if err != nil {
			return nil, fmt.Errorf("describing APIs: %w", err)
		}
		m.discoveryDocuments[root] = text
	}
	m.id = string(m.addObject("/api/v1/namespaces", metav1.NamespaceSystem, map[string]any{}).GetUID())
	for i := range nodes {
		m.addObject("/api/v1/nodes", fmt.Sprintf("node-%d", i), map[string]any{"status": map[string]any{
			"allocatable": map[string]any{"cpu": "16", "memory": "64Gi", "pods": "110"},
			"conditions":  []any{map[string]any{"type": "Ready", "status": "True"}},
		}})
	}
	for i := range pods {
		m.addObject("/api/v1/pods", fmt.Sprintf("pod-%d", i), map[string]any{"spec": map[string]any{
			"nodeName":   fmt.Sprintf("node-%d", i%max(nodes, 1)),
			"containers": []any{map[string]any{"name": "main", "resources": map[string]any{"requests": map[string]any{"cpu": "100m"}}}},
		}})
	}
	m.Server = httptest.NewUnstartedServer(m)
	m.EnableHTTP2 = true
	m.StartTLS()
	return m, nil
}

func coreAPI() apidiscoveryv2.APIGroupDiscoveryList {
	return apiList(apiGroup("", apidiscoveryv2.ScopeCluster, "Namespace", "Node"))
}

// customAPIs returns about as many APIs as clusters usually serve.
func customAPIs() apidiscoveryv2.APIGroupDiscoveryList {
	var groups []apidiscoveryv2.APIGroupDiscovery
	for i := range 40 {
		groups = append(groups, apiGroup(fmt.Sprintf("group%d.example.io", i), apidiscoveryv2.ScopeNamespace, "Alpha", "Beta", "Gamma", "Delta",
			"Epsilon", "Zeta"))
	}
	return apiList(groups...)
}

func apiList(groups ...apidiscoveryv2.APIGroupDiscovery) apidiscoveryv2.APIGroupDiscoveryList {
	return apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"}, Items: groups,
	}
}

func apiGroup(name string, scope apidiscoveryv2.ResourceScope, kinds ...string) apidiscoveryv2.APIGroupDiscovery {
	described := apidiscoveryv2.APIVersionDiscovery{Version: "v1", Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, kind := range kinds {
		described.Resources = append(described.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: strings.ToLower(kind) + "s", Scope: scope, Verbs: []string{"get", "list", "watch", "create", "delete"},
			ResponseKind: &metav1.GroupVersionKind{Group: name, Version: "v1", Kind: kind},
		})
	}
	return apidiscoveryv2.APIGroupDiscovery{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Versions: []apidiscoveryv2.APIVersionDiscovery{described},
	}
}

// ServeHTTP implements http.Handler.
func (m *memoryMember) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := strings.TrimSuffix(r.URL.Path, "/")
	switch {
	case at == "/readyz":
		_, _ = w.Write([]byte("ok"))
	case at == "/version":
		respond(w, http.StatusOK, version.Info{GitVersion: "v1.36.3"})
	case at == "/api" || at == "/apis":
		m.serveDiscovery(w, r, at)
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		m.serveWatch(w, r, at)
	case r.Method == http.MethodGet:
		m.serveRead(w, at)
	case r.Method == http.MethodPost:
		m.serveCreate(w, r, at)
	case r.Method == http.MethodDelete:
		m.serveDelete(w, at)
	default:
		respondError(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed)
	}
}

func (m *memoryMember) serveDiscovery(w http.ResponseWriter, r *http.Request, root string) {
	const tag = `"1"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_, _ = w.Write(m.discoveryDocuments[root])
}

// serveRead returns one object, or the objects of a collection.
func (m *memoryMember) serveRead(w http.ResponseWriter, at string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if object, ok := m.objects[at]; ok {
		respond(w, http.StatusOK, object)
		return
	}
	if isObjectPath(at) {
		respondError(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	items := []*unstructured.Unstructured{}
	for objectPath, object := range m.objects {
		if path.Dir(objectPath) == at {
			items = append(items, object)
		}
	}
	respond(w, http.StatusOK, map[string]any{
		"apiVersion": "v1", "kind": kindOf(at) + "List", "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(m.version)},
	})
}

func (m *memoryMember) serveCreate(w http.ResponseWriter, r *http.Request, at string) {
	object := &unstructured.Unstructured{}
	if err := json.NewDecoder(r.Body).Decode(&object.Object); err != nil {
		respondError(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[at+"/"+object.GetName()]; ok {
		respondError(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		return
	}
	m.storeLocked(at, object)
	respond(w, http.StatusCreated, object)
}

func (m *memoryMember) serveDelete(w http.ResponseWriter, at string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	object, ok := m.objects[at]
	if !ok {
		respondError(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	delete(m.objects, at)
	m.version++
	m.notifyWatchers(path.Dir(at), watchEvent{"DELETED", object})
	respond(w, http.StatusOK, object)
}

// serveWatch streams the changes of a collection from now on.
func (m *memoryMember) serveWatch(w http.ResponseWriter, r *http.Request, at string) {
	// The buffer is larger than the number of objects that are changed at once.
	events := make(chan watchEvent, 1000)
	m.mu.Lock()
	m.watchers[events] = at
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watchers, events)
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	for flush.Flush() == nil {
		select {
		case event := <-events:
			_ = json.NewEncoder(w).Encode(event)
		case <-r.Context().Done():
			return
		}
	}
}

func (m *memoryMember) addObject(collection, name string, content map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: content}
	object.SetName(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.storeLocked(collection, object)
	return object
}

// storeLocked adds an object; m.mu is held.
func (m *memoryMember) storeLocked(collection string, object *unstructured.Unstructured) {
	m.version++
	object.SetAPIVersion("v1")
	object.SetKind(kindOf(collection))
	object.SetUID(uuid.NewUUID())
	object.SetResourceVersion(strconv.Itoa(m.version))
	m.objects[collection+"/"+object.GetName()] = object
	m.notifyWatchers(collection, watchEvent{"ADDED", object})
}

func (m *memoryMember) notifyWatchers(collection string, event watchEvent) {
	for watcher, watched := range m.watchers {
		if watched == collection {
			select {
			case watcher <- event:
			default:
			}
		}
	}
}

// isObjectPath reports whether a path is the path of an object and not of a collection. The
// member stores only cluster-scoped paths of the core group.
func isObjectPath(at string) bool { return strings.Count(at, "/") == 4 }

// kindOf returns the kind of the objects in a collection.
func kindOf(collection string) string {
	resource := strings.TrimSuffix(path.Base(collection), "s")
	return strings.ToUpper(resource[:1]) + resource[1:]
}

func respond(w http.ResponseWriter, code int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(content)
}

func respondError(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	respond(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Message: http.StatusText(code),
		Code: int32(code),
	})
}
