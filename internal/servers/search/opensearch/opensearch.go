// Package opensearch stores the cached objects in OpenSearch clusters.
//
// A Sink stores objects for a feed. The index "kubernetes-<kind in lower case>" has the objects of a kind of
// all clusters. Index, mapping and documents are those of upstream, so that existing dashboards and queries
// work unchanged, with three additions:
//
//   - The ID of a document is "<cluster>_<UID>", because two clusters can have objects with the same UID.
//     Cluster names contain no underscore. The ID needs no escapes in JSON and URLs.
//   - metadata.resourceVersion is stored, so that a comparison reads only this field.
//   - The routing value of a document is "<owner>_<cluster>_<apiVersion>_<kind>". It is the only indexed
//     field that identifies a source, because this mapping does not index annotations and labels. It also
//     proves who wrote the document: documents of other control planes in the same OpenSearch cluster are
//     neither changed nor removed.
//
// A document of an existing installation has the plain UID as its ID, and no routing value. A scan of the
// index finds these documents, and an annotation has their cluster. After the feed has stored an object, the
// old document with its UID is deleted. Old documents of other objects stay, because another installation
// may have a cluster with the same name.
//
// The annotation of kubectl apply is not stored for Secrets, because it contains their values.
//
// Users should select only one version of a kind: kinds of the same name share an index and IDs, so the last
// written version is stored.
//
// The tests of this package use a strict fake server instead of a real OpenSearch.
package opensearch

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Backend identifies an OpenSearch cluster by the fields of a ResourceRegistry.
type Backend struct {
	// Addresses are the http or https URLs of its nodes.
	Addresses []string
	// SecretNamespace and SecretName name the Secret with the credentials. Without a name, no credentials
	// are sent.
	SecretNamespace, SecretName string
}

// Options configure all sinks.
type Options struct {
	// Owner identifies the control plane, for example by the UID of a Namespace. It must not contain an
	// underscore. Only one process at a time may write the documents of an owner.
	Owner string
	// Secret returns the data of a Secret in the control plane, or nil if the Secret does not exist.
	Secret func(ctx context.Context, namespace, name string) (map[string][]byte, error)
}

// Limits are the limits of all sinks. A zero field has its default.
type Limits struct {
	// RequestTimeout limits each attempt of a request. Default: 30 s.
	RequestTimeout time.Duration
	// CheckEvery is the interval at which the Secret, the server and the indexes are checked. Default: 30 s.
	CheckEvery time.Duration
	// RetryMin is the initial exponential backoff before rejected items of a bulk request are sent again.
	// Default: 500 ms.
	RetryMin time.Duration
	// BulkBytes is the maximum size of a bulk request's body, except that one document is always allowed.
	// Default: 4 MiB.
	BulkBytes int
	// PageSize is the number of documents in one page of a scan. Default: 1000.
	PageSize int
	// Feed are the limits of the feed of each back end.
	Feed feed.Limits
}

func (l Limits) withDefaults() Limits {
	l.RequestTimeout = cmp.Or(l.RequestTimeout, 30*time.Second)
	l.CheckEvery = cmp.Or(l.CheckEvery, 30*time.Second)
	l.RetryMin = cmp.Or(l.RetryMin, 500*time.Millisecond)
	l.BulkBytes = cmp.Or(l.BulkBytes, 4<<20)
	l.PageSize = cmp.Or(l.PageSize, 1000)
	return l
}

// Sink stores objects in one OpenSearch cluster. It implements feed.Sink and feed.Notifier.
type Sink struct {
	backend Backend
	options Options
	limits  Limits
	// isForeign reports whether another sink stores the objects of a cluster in the OpenSearch cluster with
	// the given UUID, for example through other addresses of the same nodes.
	isForeign func(cluster, openSearchUUID string) bool

	connections connections
	rejections  rejections

	// mu protects the fields below.
	mu sync.Mutex
	// clusters are the names of the member clusters whose objects are stored.
	clusters sets.Set[string]
	changed  chan struct{}
	indexes  map[string]*indexState
}

// indexState is the observed state of an index.
type indexState struct {
	uuid string
	// checked is the time when the index was last found.
	checked time.Time
	// isScanned is true if legacy is complete.
	isScanned bool
	// legacy has the UIDs of an existing installation's documents, by the routing value that they should
	// have.
	legacy map[string]sets.Set[string]
	// routings are the routing values of the sources that have been compared or written.
	routings sets.Set[string]
}

// NewSink returns a sink that stores nothing until SetClusters is called.
func NewSink(backend Backend, options Options, limits Limits) *Sink {
	s := &Sink{
		backend: backend, options: options, limits: limits.withDefaults(),
		isForeign: func(string, string) bool { return false },
		changed:   make(chan struct{}), indexes: map[string]*indexState{},
	}
	s.connections.sink = s
	return s
}

// Name implements feed.Sink.
func (s *Sink) Name() string { return "OpenSearch " + s.backend.String() }

// Wants implements feed.Sink: it reports whether SetClusters selected the cluster of a source.
func (s *Sink) Wants(source objectcache.Source) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clusters.Has(source.Cluster)
}

// Changed implements feed.Notifier: it reports lost documents and changes of the selected clusters.
func (s *Sink) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// SetClusters selects the member clusters whose objects are stored. The objects of other clusters are removed
// if this owner wrote them.
func (s *Sink) SetClusters(clusters sets.Set[string]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !maps.Equal(s.clusters, clusters) {
		s.clusters = clusters
		s.notify()
	}
}

// notify closes the channel of Changed. The caller holds mu.
func (s *Sink) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Watch checks the connection and the indexes until ctx ends, so that a loss of documents is detected even if
// nothing is written. A deleted index is usually created again before the next write. If a write comes first,
// and the server creates indexes automatically, the index has another mapping until a user deletes it.
func (s *Sink) Watch(ctx context.Context) {
	ticker := time.NewTicker(s.limits.CheckEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			// A failed check does not prove a loss. The next write reports the error.
			_ = s.verifyIndexes(ctx)
		}
	}
}
