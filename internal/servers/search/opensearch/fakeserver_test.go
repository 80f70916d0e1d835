package opensearch_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
)

// fakeDocument is a stored document.
type fakeDocument struct {
	Routing string
	// Source is the JSON of the document.
	Source json.RawMessage
	// isVisible is true if a search finds the document.
	isVisible bool
}

// fakeItemError is the error of one item of a bulk request.
type fakeItemError struct {
	Status int
	Type   string
	Reason string
}

// fakeFaults are the ways in which the server fails. The zero value means that it does not fail.
type fakeFaults struct {
	// Item returns the error of a bulk item, or nil.
	Item func(id string) *fakeItemError
	// Status, if not 0, is the status of all responses except that of the info endpoint.
	Status int
	// Poison, if not empty, is a text for which the server responds to a bulk request with the status 400.
	Poison string
	// Overloaded is the number of following bulk requests that get the status 429.
	Overloaded int
	// Full makes the server reject writes of documents because its disk is full.
	Full bool
	// MaxBody is the maximum size of a bulk request in bytes. 0 means no limit.
	MaxBody int
	// Hang makes requests wait until the client gives up.
	Hang bool
	// LoseHits is the number of following pages of scans that are empty.
	LoseHits int
}

// T is the part of testing.TB that a server uses.
type T interface {
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(function func())
}

// fakeServer is a fake OpenSearch cluster with one or more nodes. It was written from the public
// documentation of the HTTP API. It validates each request strictly: method, path, parameters, content
// type, the form of bulk bodies, the existence of indexes, settings and mappings, IDs, and
// authentication. An unknown request fails the test. As in OpenSearch, a search finds written documents
// only after a refresh.
type fakeServer struct {
	t T
	// Username and Password are required in each request if Username is not empty.
	username, password string

	mu       sync.Mutex
	faults   fakeFaults
	uuid     string
	nextUUID int
	indexes  map[string]*index
	aliases  map[string]string
	scrolls  map[string]*scroll
	requests map[string]int
	written  int
}

// index is one index.
type index struct {
	uuid string
	// settings and mappings are as in the request that created the index.
	settings  map[string]any
	mappings  map[string]any
	documents map[string]*fakeDocument
	// deleted are the deleted documents that a search still finds.
	deleted map[string]*fakeDocument
}

// newFakeServer returns a server without indexes. AddNode makes it reachable.
func newFakeServer(t T) *fakeServer {
	return &fakeServer{
		t: t, uuid: "cluster-" + rand.Text(),
		indexes: map[string]*index{}, aliases: map[string]string{}, scrolls: map[string]*scroll{}, requests: map[string]int{},
	}
}

// RequireUser makes the server reject requests without the user and password.
func (s *fakeServer) RequireUser(username, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.username, s.password = username, password
}

// Rename moves an index to another name, and makes its former name an alias.
func (s *fakeServer) Rename(name, renamed string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indexes[renamed] = s.indexes[name]
	s.aliases[name] = renamed
	delete(s.indexes, name)
}

// resolve returns the name of the index behind an alias.
func (s *fakeServer) resolve(name string) string {
	if renamed := s.aliases[name]; renamed != "" {
		return renamed
	}
	return name
}

// fakeNode is one address of a server.
type fakeNode struct {
	URL     string
	server  *httptest.Server
	cluster *fakeServer
}

// AddNode starts a node. configure, if not nil, can change it before it starts, for example its TLS
// configuration: a node with one uses HTTPS.
func (s *fakeServer) AddNode(configure func(*httptest.Server)) *fakeNode {
	node := &fakeNode{cluster: s}
	node.start("127.0.0.1:0", configure)
	s.t.Cleanup(node.Stop)
	return node
}

func (n *fakeNode) start(address string, configure func(*httptest.Server)) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		n.cluster.t.Fatalf("starting a node: %v", err)
	}
	n.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: n.cluster}}
	if configure != nil {
		configure(n.server)
	}
	if n.server.TLS != nil {
		n.server.StartTLS()
	} else {
		n.server.Start()
	}
	n.URL = n.server.URL
}

// Certificate returns the DER certificate of a node with TLS.
func (n *fakeNode) Certificate() []byte { return n.server.Certificate().Raw }

// Stop makes the node unreachable.
func (n *fakeNode) Stop() {
	n.server.CloseClientConnections()
	n.server.Close()
}

// Restart makes a stopped node reachable under the same address, without TLS.
func (n *fakeNode) Restart() { n.start(n.server.Listener.Addr().String(), nil) }

// SetFaults changes how the server fails.
func (s *fakeServer) SetFaults(faults fakeFaults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults
}

// LoseData removes all indexes.
func (s *fakeServer) LoseData() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indexes, s.scrolls = map[string]*index{}, map[string]*scroll{}
}

// Replace makes the server a new OpenSearch cluster without data.
func (s *fakeServer) Replace() {
	s.LoseData()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uuid = "cluster-" + rand.Text()
}

// Put stores a document as another program does. The index must exist.
func (s *fakeServer) Put(indexName, id, routing, source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indexes[indexName].documents[id] = &fakeDocument{Routing: routing, Source: json.RawMessage(source), isVisible: true}
}

// CreateIndex creates an index as another program does.
func (s *fakeServer) CreateIndex(name string, mappings string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var decoded map[string]any
	if err := json.Unmarshal([]byte(mappings), &decoded); err != nil {
		s.t.Fatalf("mappings of index %s: %v", name, err)
	}
	s.addIndex(name, map[string]any{}, decoded)
}

func (s *fakeServer) addIndex(name string, settings, mappings map[string]any) {
	s.nextUUID++
	s.indexes[name] = &index{
		uuid: fmt.Sprintf("index-%d", s.nextUUID), settings: settings, mappings: mappings,
		documents: map[string]*fakeDocument{}, deleted: map[string]*fakeDocument{},
	}
}

// Documents returns the documents of an index by ID.
func (s *fakeServer) Documents(indexName string) map[string]fakeDocument {
	s.mu.Lock()
	defer s.mu.Unlock()
	documents := map[string]fakeDocument{}
	if i := s.indexes[indexName]; i != nil {
		for id, document := range i.documents {
			documents[id] = *document
		}
	}
	return documents
}

// Definition returns the settings and the mappings of an index.
func (s *fakeServer) Definition(indexName string) (settings, mappings map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.indexes[indexName]; i != nil {
		return i.settings, i.mappings
	}
	return nil, nil
}

// Requests returns the number of requests of a kind, such as "POST _bulk".
func (s *fakeServer) Requests(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[kind]
}

// Written returns the number of documents that were stored or deleted by bulk requests.
func (s *fakeServer) Written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written
}

// OpenScrolls returns the number of scans that were not ended.
func (s *fakeServer) OpenScrolls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.scrolls)
}

// ServeHTTP responds to a request of a node.
func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client closed the connection
	}
	s.mu.Lock()
	if s.faults.Hang {
		s.mu.Unlock()
		<-r.Context().Done()
		return
	}
	defer s.mu.Unlock()
	status, answer := s.respond(r, body)
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *fakeServer) respond(r *http.Request, body []byte) (int, any) {
	if username, password, _ := r.BasicAuth(); s.username != "" && (username != s.username || password != s.password) {
		return http.StatusUnauthorized, "Unauthorized"
	}
	if s.username == "" && r.Header.Get("Authorization") != "" {
		return s.violation("the request has credentials although none are configured")
	}
	if s.faults.Status != 0 && r.URL.Path != "/" {
		return failureResponse(s.faults.Status, "injected_exception", "injected by the test")
	}
	return s.route(r, body)
}

// violation fails the test, and returns an error response.
func (s *fakeServer) violation(format string, args ...any) (int, any) {
	s.t.Errorf("fake OpenSearch: "+format, args...)
	return failureResponse(http.StatusBadRequest, "illegal_argument_exception", fmt.Sprintf(format, args...))
}

func failureResponse(status int, kind, reason string) (int, any) {
	cause := map[string]any{"type": kind, "reason": reason}
	return status, map[string]any{
		"error": map[string]any{"root_cause": []any{cause}, "type": kind, "reason": reason}, "status": status,
	}
}

func indexMissing(name string) (int, any) {
	return failureResponse(http.StatusNotFound, "index_not_found_exception", "no such index ["+name+"]")
}
