// Package opensearch answers: how are the cached objects stored in an OpenSearch cluster?
//
// A Sink stores objects for a feed. The objects of a kind of all clusters are in the index
// "kubernetes-<kind in lower case>". Index, mapping and document are those of existing
// installations, so that dashboards and queries of users work unchanged, with three additions:
//
//   - The ID of a document is "<cluster>_<UID>", because two clusters can have objects with the same
//     UID. The name of a cluster has no underscore. The ID needs no escape in JSON and URLs.
//   - metadata.resourceVersion is stored, so that a comparison needs to read only this field.
//   - The routing value of a document is "<owner>_<cluster>_<apiVersion>_<kind>". It is the only
//     indexed value by which the documents of a source can be found, because annotations and labels
//     are not indexed in this mapping. It also proves who wrote the document: another control plane
//     can use the same OpenSearch, and its documents are neither changed nor removed.
//
// Documents of an existing installation have the plain UID as their ID and no routing value. For
// each source that is stored, they are found by a scan of the index and by the annotation of the
// cluster. The feed stores the objects anew, and after that the old document with the UID of the stored
// object is deleted. Old documents of other objects stay, because another installation may have a
// cluster with the same name.
//
// The annotation of kubectl with the last applied manifest is not stored for Secrets, because it
// contains their values.
//
// Only one version of a kind should be selected: versions and groups of one kind name share an index
// and IDs, so the last written one is stored.
//
// No real OpenSearch was used for the tests of this package, but a strict server (opensearchtest).
package opensearch

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Backend identifies an OpenSearch cluster as a ResourceRegistry names it.
type Backend struct {
	// Addresses are the http or https URLs of its nodes.
	Addresses []string
	// SecretNamespace and SecretName name the Secret with the credentials. An empty name means that
	// no credentials are sent.
	SecretNamespace, SecretName string
}

// Options are the values that all sinks share.
type Options struct {
	// Owner identifies the control plane, for example the UID of a Namespace in it. It must not
	// contain an underscore. All documents of one owner are written by one process at a time.
	Owner string
	// Secret returns the data of a Secret of the control plane, and nil if the Secret does not exist.
	Secret func(ctx context.Context, namespace, name string) (map[string][]byte, error)
}

// Limits are the limits of all sinks. Zero values mean the defaults.
type Limits struct {
	// RequestTimeout limits each attempt of a request. Default: 30 s.
	RequestTimeout time.Duration
	// CheckEvery is the interval in which the Secret, the server and the indexes are checked.
	// Default: 30 s.
	CheckEvery time.Duration
	// RetryMin is the delay before rejected items of a bulk request are sent again. It doubles with
	// each of the five attempts. Default: 500 ms.
	RetryMin time.Duration
	// BulkBytes is the maximum size of the body of a bulk request, except that one document is always
	// allowed. Default: 4 MiB.
	BulkBytes int
	// PageSize is the number of documents in one page of a scan. Default: 1000.
	PageSize int
	// Feed are the limits of the feed of each back end.
	Feed feed.Limits
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.RequestTimeout, 30*time.Second)
	setDefault(&l.CheckEvery, 30*time.Second)
	setDefault(&l.RetryMin, 500*time.Millisecond)
	setDefault(&l.BulkBytes, 4<<20)
	setDefault(&l.PageSize, 1000)
	return l
}

func setDefault[T comparable](value *T, byDefault T) {
	if *value == *new(T) {
		*value = byDefault
	}
}

// Sink stores objects in one OpenSearch cluster. It implements feed.Sink and feed.Notifier.
type Sink struct {
	backend Backend
	options Options
	limits  Limits
	// isForeign reports whether another sink stores the objects of a cluster in the OpenSearch
	// cluster with the given UUID, for example with other addresses of the same nodes.
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

// indexState is what is known of an index.
type indexState struct {
	uuid string
	// checked is the time at which the index existed.
	checked time.Time
	// isScanned is true if legacy has all documents of an existing installation.
	isScanned bool
	// legacy has the UIDs of the documents of an existing installation by the routing value that they
	// should have.
	legacy map[string]sets.Set[string]
	// routings are the routing values of the sources that were compared or written.
	routings sets.Set[string]
}

// NewSink returns a sink that stores the objects of no cluster. SetClusters sets them.
func NewSink(backend Backend, options Options, limits Limits) *Sink {
	s := &Sink{
		backend: backend, options: options, limits: limits.withDefaults(),
		isForeign: func(string, string) bool { return false },
		changed:   make(chan struct{}), indexes: map[string]*indexState{},
	}
	s.connections.sink = s
	return s
}

// Name returns the name of the back end for messages.
func (s *Sink) Name() string { return "OpenSearch " + s.backend.String() }

// Wants reports whether the objects of the cluster of a source are stored.
func (s *Sink) Wants(source objectcache.Source) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clusters.Has(source.Cluster)
}

// Changed returns a channel that is closed when documents were lost or when the set of clusters
// changes.
func (s *Sink) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// SetClusters sets the names of the member clusters whose objects are stored. The objects of other
// clusters are removed if this owner wrote them.
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

// Watch checks the connection and the indexes until ctx ends, so that a loss of documents is found
// although nothing is written. An index that is deleted is usually created again before the next
// write. If a write comes first and the server creates indexes automatically, the index has another
// mapping until a user deletes it again.
func (s *Sink) Watch(ctx context.Context) {
	ticker := time.NewTicker(s.limits.CheckEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			// A failed check is no loss. The next write reports the error.
			_ = s.checkIndexes(ctx)
		}
	}
}
