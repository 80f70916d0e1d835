// Package podmember simulates the API servers of many members with many Pods in one process.
//
// A Member generates each Pod when a request needs it, and keeps in memory only the versions of the Pods
// that were changed. It serves discovery, lists in pages, watches with history and bookmarks, and
// reviews of access, which allow everything.
package podmember

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Options configure a Member.
type Options struct {
	// Member is the number of the member. Members with other numbers have other Pods.
	Member int
	// Pods and Namespaces are the numbers of Pods and of namespaces that contain them evenly.
	Pods, Namespaces int
	// Bookmark is the interval of bookmarks in a watch. The default is one minute, as in an API server.
	Bookmark time.Duration
}

// firstVersion is the resourceVersion of a member without changes.
const firstVersion = 1_000_000

// Member is the API server of one member.
type Member struct {
	*httptest.Server
	pods *generator
	// documents are the fixed responses by path.
	documents map[string][]byte
	closed    chan struct{}

	mu sync.Mutex
	// changes are the changes of Pods: the change at index n led to the version firstVersion + n + 1.
	changes []change
	// last is the index of the last change of a Pod.
	last map[int]int
	// changed is closed at the next change.
	changed chan struct{}
}

// change is one change of a Pod.
type change struct {
	pod    int
	number int64
}

// Start starts a member, which must be closed.
func Start(o Options) (*Member, error) {
	if o.Pods < 1 || o.Namespaces < 1 {
		return nil, fmt.Errorf("member %d with %d Pods in %d namespaces: both numbers must be positive", o.Member, o.Pods, o.Namespaces)
	}
	if o.Bookmark == 0 {
		o.Bookmark = time.Minute
	}
	m := &Member{
		pods: &generator{segments: parseTemplate(podTemplate), options: o}, closed: make(chan struct{}),
		last: map[int]int{}, changed: make(chan struct{}),
	}
	if err := m.writeDocuments(); err != nil {
		return nil, err
	}
	m.Server = httptest.NewUnstartedServer(http.HandlerFunc(m.serve))
	m.EnableHTTP2 = true
	m.StartTLS()
	return m, nil
}

// Close ends all requests and the server.
func (m *Member) Close() {
	close(m.closed)
	m.CloseClientConnections()
	m.Server.Close()
}

// ID returns the UID of the namespace kube-system, which identifies the member.
func (m *Member) ID() string {
	return string(appendUID(nil, mix(uint64(m.pods.options.Member), 20), 1))
}

// Change changes a Pod: its annotation ChangeAnnotation gets the number. The watches get an event.
func (m *Member) Change(pod int, number int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last[pod] = len(m.changes)
	m.changes = append(m.changes, change{pod, number})
	close(m.changed)
	m.changed = make(chan struct{})
}

// state returns the version, the changes until now, and the channel that the next change closes.
func (m *Member) state() (version int64, changes []change, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return firstVersion + int64(len(m.changes)), m.changes, m.changed
}

// appendPod appends the JSON of a Pod as it is now.
func (m *Member) appendPod(dst []byte, pod int) []byte {
	m.mu.Lock()
	last, isChanged := m.last[pod]
	version, number := firstVersion-int64(m.pods.options.Pods-pod), int64(0)
	if isChanged {
		version, number = firstVersion+int64(last)+1, m.changes[last].number
	}
	m.mu.Unlock()
	return m.pods.append(dst, pod, version, number)
}

func (m *Member) writeDocuments() error {
	pods := metav1.APIResource{
		Name: "pods", SingularName: "pod", Kind: "Pod", Namespaced: true, ShortNames: []string{"po"}, Verbs: metav1.Verbs{"get", "list", "watch"},
	}
	m.documents = map[string][]byte{}
	for path, document := range map[string]any{
		"/api":  metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}},
		"/api/v1": metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1", APIResources: []metav1.APIResource{pods},
		},
		"/version": map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.3"},
		"/api/v1/namespaces/kube-system": map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "kube-system", "uid": m.ID(), "resourceVersion": "1"},
		},
		"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": map[string]any{"allowed": true},
		},
	} {
		text, err := json.Marshal(document)
		if err != nil {
			return fmt.Errorf("encoding the response of %s: %w", path, err)
		}
		m.documents[path] = text
	}
	return nil
}
