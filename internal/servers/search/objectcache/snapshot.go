package objectcache

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/google/btree"
)

// State says whether the objects of a source are up to date.
type State string

// The states of a source.
const (
	// Waiting means that the objects were never listed.
	Waiting State = "Waiting"
	// Current means that the objects are watched.
	Current State = "Current"
	// Stale means that the objects were listed, but are not watched: the cluster is not ready, or the
	// watch fails.
	Stale State = "Stale"
)

// Snapshot is the state of all objects of a kind at one moment. It is immutable.
type Snapshot struct {
	position Position
	clusters []*ClusterObjects
}

// Position returns the position of the first event that the snapshot does not contain.
func (s *Snapshot) Position() Position { return s.position }

// Clusters returns the clusters in the order of their names, also those that are Waiting or Stale. The
// caller must not modify the result.
func (s *Snapshot) Clusters() []*ClusterObjects { return s.clusters }

// Cluster returns the objects of one cluster, or nil if the kind is not cached for the cluster.
func (s *Snapshot) Cluster(name string) *ClusterObjects {
	i, found := slices.BinarySearchFunc(s.clusters, name, func(c *ClusterObjects, name string) int {
		return strings.Compare(c.source.Cluster, name)
	})
	if !found {
		return nil
	}
	return s.clusters[i]
}

// versions returns the resourceVersion of each cluster that was listed.
func (s *Snapshot) versions() map[string]string {
	versions := make(map[string]string, len(s.clusters))
	for _, c := range s.clusters {
		if c.version != "" {
			versions[c.source.Cluster] = c.version
		}
	}
	return versions
}

// ClusterObjects holds the objects of one kind in one cluster at one moment. It is immutable.
type ClusterObjects struct {
	source     *objectSource
	state      State
	since      time.Time
	reason     string
	version    string
	namespaces []string
	objects    *btree.BTreeG[*Object]
	bytes      int64
}

// Source returns the source of the objects.
func (c *ClusterObjects) Source() *Source { return &c.source.Source }

// State returns the state, the time at which it began, and what is wrong. The reason is empty for
// Current sources.
func (c *ClusterObjects) State() (state State, since time.Time, reason string) {
	return c.state, c.since, c.reason
}

// ResourceVersion returns the resourceVersion of the newest list, event or bookmark of the member. It
// is empty while the source is Waiting.
func (c *ClusterObjects) ResourceVersion() string { return c.version }

// Namespaces returns the namespaces to which registries restrict the proxy, sorted. Nil means all.
func (c *ClusterObjects) Namespaces() []string { return c.namespaces }

// Len returns the number of objects.
func (c *ClusterObjects) Len() int { return c.objects.Len() }

// Bytes returns the memory of the objects.
func (c *ClusterObjects) Bytes() int64 { return c.bytes }

// Get returns the object with a namespace and a name, or nil if there is none.
func (c *ClusterObjects) Get(namespace, name string) *Object {
	object, _ := c.objects.Get(newKey(namespace, name))
	return object
}

// All returns the objects of a namespace in the order of namespace and name (byte order). The
// namespace "" means all.
func (c *ClusterObjects) All(namespace string) iter.Seq[*Object] {
	return c.From(namespace, namespace, "")
}

// From returns the objects of a namespace, as All, but begins at the first object that is not less
// than (fromNamespace, fromName).
func (c *ClusterObjects) From(namespace, fromNamespace, fromName string) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		c.objects.AscendGreaterOrEqual(newKey(fromNamespace, fromName), func(object *Object) bool {
			if namespace != "" && object.Namespace() != namespace {
				return object.Namespace() < namespace
			}
			return yield(object)
		})
	}
}
