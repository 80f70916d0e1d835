// Package hostiletest is a member cluster for tests that can be told to do harm: it
// speaks enough of the Kubernetes API to be a member, and each Mode is one attack.
// What it sends is made while it is sent, so that its memory is not that of the test.
package hostiletest

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// Member is a member cluster.
type Member struct {
	*httptest.Server

	mu      sync.Mutex
	mode    Mode
	objects map[string]map[string]any
	version int
	changed chan struct{}
	// ended ends all requests.
	ended chan struct{}
}

// New starts a member that is honest. It ends with the test.
func New(t testing.TB) *Member {
	t.Helper()
	m := &Member{objects: map[string]map[string]any{}, changed: make(chan struct{}), ended: make(chan struct{})}
	m.Server = httptest.NewUnstartedServer(m)
	m.EnableHTTP2 = true
	m.StartTLS()
	t.Cleanup(func() {
		close(m.ended)
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

// Turn makes the member act by a mode from now on. Watches end.
func (m *Member) Turn(mode Mode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mode = mode
	m.wake()
}

// CA is the certificate of the member in PEM.
func (m *Member) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.Certificate().Raw})
}

// Has reports whether the member holds an object at a path such as
// "/api/v1/namespaces/default/configmaps/one".
func (m *Member) Has(path string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects[path] != nil
}

func (m *Member) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (m *Member) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	mode := m.mode
	m.mu.Unlock()
	if mode.attack != nil && mode.attack(m, w, r) {
		return
	}
	switch path := r.URL.Path; {
	case path == "/readyz", path == "/healthz":
		_, _ = w.Write([]byte("ok"))
	case path == "/version":
		write(w, http.StatusOK, map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
	case path == "/api":
		write(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path == "/apis":
		write(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
	case path == "/api/v1":
		write(w, http.StatusOK, resources())
	case strings.HasPrefix(path, "/api/v1/"):
		m.serveObjects(w, r)
	default:
		http.NotFound(w, r)
	}
}

// kinds are those that the member serves, by resource.
var kinds = map[string]string{
	"configmaps": "ConfigMap", "secrets": "Secret", "namespaces": "Namespace", "nodes": "Node", "pods": "Pod", "serviceaccounts": "ServiceAccount",
}

func resources() metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1"}
	for resource, kind := range kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: resource, Kind: kind, Namespaced: resource != "namespaces" && resource != "nodes",
			Verbs: metav1.Verbs{"get", "list", "watch", "create", "update", "delete"},
		})
	}
	return list
}

// asked returns the resource and the name of the object that a path names.
func asked(path string) (resource, name string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")[2:]
	at := 0
	if len(parts) > 2 && parts[0] == "namespaces" {
		at = 2
	}
	resource = parts[at]
	if len(parts) > at+1 {
		name = parts[at+1]
	}
	return resource, name
}

func (m *Member) serveObjects(w http.ResponseWriter, r *http.Request) {
	resource, name := asked(r.URL.Path)
	switch {
	case kinds[resource] == "":
		http.NotFound(w, r)
	case r.Method == http.MethodPost:
		m.create(w, r)
	case name != "":
		m.serveObject(w, r, resource, name)
	case r.URL.Query().Get("watch") != "":
		m.watch(w, r, resource)
	default:
		m.mu.Lock()
		defer m.mu.Unlock()
		write(w, http.StatusOK, map[string]any{
			"apiVersion": "v1", "kind": kinds[resource] + "List", "items": m.list(r, resource),
			"metadata": map[string]any{"resourceVersion": strconv.Itoa(m.version)},
		})
	}
}

func (m *Member) create(w http.ResponseWriter, r *http.Request) {
	object := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	m.store(r.URL.Path+"/"+name, object, "uid-"+name)
	write(w, http.StatusCreated, object)
}

// store keeps an object; m.mu is held.
func (m *Member) store(path string, object map[string]any, uid string) {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	m.version++
	metadata["uid"], metadata["resourceVersion"] = uid, strconv.Itoa(m.version)
	m.objects[path] = object
	m.wake()
}

func (m *Member) serveObject(w http.ResponseWriter, r *http.Request, resource, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	object := m.objects[r.URL.Path]
	switch {
	case object == nil:
		write(w, http.StatusNotFound, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
			Message: resource + ` "` + name + `" not found`, Details: &metav1.StatusDetails{Name: name, Kind: resource},
		})
	case r.Method == http.MethodPut:
		updated := map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&updated); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		m.store(r.URL.Path, updated, "uid-"+name)
		write(w, http.StatusOK, updated)
	case r.Method == http.MethodDelete:
		delete(m.objects, r.URL.Path)
		m.wake()
		write(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"})
	default:
		write(w, http.StatusOK, object)
	}
}

// list returns the objects that a request selects; m.mu is held.
func (m *Member) list(r *http.Request, resource string) []map[string]any {
	items := []map[string]any{}
	marked := strings.Contains(r.URL.Query().Get("labelSelector"), workv1alpha1.ManagedByKarmadaLabel)
	for path, object := range m.objects {
		if !strings.Contains(path, "/"+resource+"/") {
			continue
		}
		metadata, _ := object["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		if !marked || labels[workv1alpha1.ManagedByKarmadaLabel] == workv1alpha1.ManagedByKarmadaLabelValue {
			items = append(items, object)
		}
	}
	return items
}

// watch tells of all objects, and ends when something changes: the next list shows it.
func (m *Member) watch(w http.ResponseWriter, r *http.Request, resource string) {
	m.mu.Lock()
	changed, items, version := m.changed, m.list(r, resource), strconv.Itoa(m.version)
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, object := range items {
			_ = encoder.Encode(map[string]any{"type": "ADDED", "object": object})
		}
		_ = encoder.Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{
			"apiVersion": "v1", "kind": kinds[resource],
			"metadata": map[string]any{"resourceVersion": version, "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"}},
		}})
	} else if r.URL.Query().Get("resourceVersion") != version {
		expired := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonExpired, Code: http.StatusGone}
		_ = encoder.Encode(map[string]any{"type": "ERROR", "object": expired})
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	flush(w)
	select {
	case <-changed:
	case <-m.ended:
	case <-r.Context().Done():
	}
}

func write(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
