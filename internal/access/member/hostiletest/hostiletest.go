// Package hostiletest provides a member cluster for tests that can be made hostile. The member
// serves the part of the Kubernetes API that Karmada needs, and each Mode is one attack on the
// clients of the member. The member generates responses while it sends them, so that their memory
// does not distort measurements in tests.
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

// Member is a test server that acts as a member cluster.
type Member struct {
	*httptest.Server

	mu              sync.Mutex
	mode            Mode
	objects         map[string]map[string]any
	resourceVersion int
	changed         chan struct{}
	// closed is closed to end all requests.
	closed chan struct{}
}

// New starts a member that responds correctly. The member is stopped at the end of the test.
func New(t testing.TB) *Member {
	t.Helper()
	m := &Member{objects: map[string]map[string]any{}, changed: make(chan struct{}), closed: make(chan struct{})}
	m.Server = httptest.NewUnstartedServer(m)
	m.EnableHTTP2 = true
	m.StartTLS()
	t.Cleanup(func() {
		close(m.closed)
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

// SetMode sets the mode of the member and ends all open watches.
func (m *Member) SetMode(mode Mode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mode = mode
	m.notifyWatches()
}

// CA returns the certificate of the member in PEM.
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

func (m *Member) notifyWatches() {
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
		writeJSON(w, http.StatusOK, map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
	case path == "/api":
		writeJSON(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path == "/apis":
		writeJSON(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
	case path == "/api/v1":
		writeJSON(w, http.StatusOK, resourceList())
	case strings.HasPrefix(path, "/api/v1/"):
		m.serveObjects(w, r)
	default:
		http.NotFound(w, r)
	}
}

// kinds contains the kind of each served resource.
var kinds = map[string]string{
	"configmaps": "ConfigMap", "secrets": "Secret", "namespaces": "Namespace", "nodes": "Node", "pods": "Pod",
	"serviceaccounts": "ServiceAccount",
}

func resourceList() metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1"}
	for resource, kind := range kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: resource, Kind: kind, Namespaced: resource != "namespaces" && resource != "nodes",
			Verbs: metav1.Verbs{"get", "list", "watch", "create", "update", "delete"},
		})
	}
	return list
}

// parsePath returns the resource and the object name in a path.
func parsePath(path string) (resource, name string) {
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
	resource, name := parsePath(r.URL.Path)
	switch {
	case kinds[resource] == "":
		http.NotFound(w, r)
	case r.Method == http.MethodPost:
		m.createObject(w, r)
	case name != "":
		m.serveObject(w, r, resource, name)
	case r.URL.Query().Get("watch") != "":
		m.watch(w, r, resource)
	default:
		m.mu.Lock()
		defer m.mu.Unlock()
		writeJSON(w, http.StatusOK, map[string]any{
			"apiVersion": "v1", "kind": kinds[resource] + "List", "items": m.selectObjects(r, resource),
			"metadata": map[string]any{"resourceVersion": strconv.Itoa(m.resourceVersion)},
		})
	}
}

func (m *Member) createObject(w http.ResponseWriter, r *http.Request) {
	object := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	m.storeObject(r.URL.Path+"/"+name, object, "uid-"+name)
	writeJSON(w, http.StatusCreated, object)
}

// storeObject stores an object. The caller holds m.mu.
func (m *Member) storeObject(path string, object map[string]any, uid string) {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	m.resourceVersion++
	metadata["uid"], metadata["resourceVersion"] = uid, strconv.Itoa(m.resourceVersion)
	m.objects[path] = object
	m.notifyWatches()
}

func (m *Member) serveObject(w http.ResponseWriter, r *http.Request, resource, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	object := m.objects[r.URL.Path]
	switch {
	case object == nil:
		writeJSON(w, http.StatusNotFound, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonNotFound,
			Code:    http.StatusNotFound,
			Message: resource + ` "` + name + `" not found`, Details: &metav1.StatusDetails{Name: name, Kind: resource},
		})
	case r.Method == http.MethodPut:
		updated := map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&updated); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		m.storeObject(r.URL.Path, updated, "uid-"+name)
		writeJSON(w, http.StatusOK, updated)
	case r.Method == http.MethodDelete:
		delete(m.objects, r.URL.Path)
		m.notifyWatches()
		writeJSON(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"})
	default:
		writeJSON(w, http.StatusOK, object)
	}
}

// selectObjects returns the objects that match a request. The caller holds m.mu.
func (m *Member) selectObjects(r *http.Request, resource string) []map[string]any {
	items := []map[string]any{}
	onlyManaged := strings.Contains(r.URL.Query().Get("labelSelector"), workv1alpha1.ManagedByKarmadaLabel)
	for path, object := range m.objects {
		if !strings.Contains(path, "/"+resource+"/") {
			continue
		}
		metadata, _ := object["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		if !onlyManaged || labels[workv1alpha1.ManagedByKarmadaLabel] == workv1alpha1.ManagedByKarmadaLabelValue {
			items = append(items, object)
		}
	}
	return items
}

// watch sends all objects, and ends when an object changes. The client sees the change in its next
// list.
func (m *Member) watch(w http.ResponseWriter, r *http.Request, resource string) {
	m.mu.Lock()
	changed, items, version := m.changed, m.selectObjects(r, resource), strconv.Itoa(m.resourceVersion)
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
		expired := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
			Reason: metav1.StatusReasonExpired, Code: http.StatusGone}
		_ = encoder.Encode(map[string]any{"type": "ERROR", "object": expired})
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	flush(w)
	select {
	case <-changed:
	case <-m.closed:
	case <-r.Context().Done():
	}
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
