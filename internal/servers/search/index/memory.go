package index

import (
	"cmp"
	"container/heap"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Memory finds candidates in the cache by cluster, kind, namespace, name and labels. It needs no
// index. Other terms are not used, so a query for text decodes all objects.
type Memory struct {
	cache *objectcache.Cache
}

// NewMemory returns a searcher of a cache.
func NewMemory(cache *objectcache.Cache) *Memory { return &Memory{cache: cache} }

// Sources searches the objects of sources at one moment. The sources must be ordered by cluster.
type Sources []*objectcache.ClusterObjects

// Candidates implements Searcher.
func (s Sources) Candidates(ctx context.Context, q *searchquery.Query, after Cursor, yield func(*objectcache.Object) bool) error {
	return candidatesOf(ctx, s, q, after, yield)
}

// checkEvery is the number of objects after which a search looks whether its context ended.
const checkEvery = 256

// Candidates implements Searcher.
func (m *Memory) Candidates(ctx context.Context, q *searchquery.Query, after Cursor, yield func(*objectcache.Object) bool) error {
	return candidatesOf(ctx, possibleSources(m.cache, q), q, after, yield)
}

// possibleSources returns the sources whose objects can match, in the order of clusters.
func possibleSources(cache *objectcache.Cache, q *searchquery.Query) []*objectcache.ClusterObjects {
	var possible []*objectcache.ClusterObjects
	for _, kind := range cache.Kinds() {
		for _, objects := range kind.Snapshot().Clusters() {
			if objects.Len() > 0 && q.CanMatch(KnownOf(objects.Source())) {
				possible = append(possible, objects)
			}
		}
	}
	slices.SortStableFunc(possible, func(a, b *objectcache.ClusterObjects) int {
		return strings.Compare(a.Source().Cluster, b.Source().Cluster)
	})
	return possible
}

// KnownOf returns what is known about all objects of a source.
func KnownOf(source *objectcache.Source) searchquery.Known {
	return searchquery.Known{Cluster: source.Cluster, APIVersion: source.Kind.GroupVersion().String(), Kind: source.Kind.Kind}
}

// CanMatch reports whether an object can match a query, without decoding the object.
func CanMatch(q *searchquery.Query, object *objectcache.Object) bool {
	return q.CanMatch(knownOfObject(object))
}

func knownOfObject(object *objectcache.Object) searchquery.Known {
	known := KnownOf(object.Source())
	known.HasName, known.Namespace, known.Name = true, object.Namespace(), object.Name()
	known.Label = func(key string) (string, bool) { return lookup(object.Labels(), key) }
	return known
}

func lookup(of labels.Labels, key string) (string, bool) { return of.Lookup(key) }

// candidatesOf yields the candidates of sources, which are ordered by cluster.
func candidatesOf(ctx context.Context, sources []*objectcache.ClusterObjects, q *searchquery.Query, after Cursor, yield func(*objectcache.Object) bool) error {
	count := 0
	for ofCluster := range byCluster(sources, after) {
		for object := range merged(ofCluster, after) {
			if count++; count%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if CanMatch(q, object) && !yield(object) {
				return nil
			}
		}
	}
	return ctx.Err()
}

// byCluster returns the sources of each cluster from the cluster of a position on. The sources are
// ordered by cluster.
func byCluster(sources []*objectcache.ClusterObjects, after Cursor) iter.Seq[[]*objectcache.ClusterObjects] {
	return func(yield func([]*objectcache.ClusterObjects) bool) {
		for len(sources) > 0 {
			cluster := sources[0].Source().Cluster
			end := slices.IndexFunc(sources, func(s *objectcache.ClusterObjects) bool { return s.Source().Cluster != cluster })
			if end < 0 {
				end = len(sources)
			}
			if cluster >= after.Cluster && !yield(sources[:end]) {
				return
			}
			sources = sources[end:]
		}
	}
}

// merged returns the objects of all sources of one cluster after a position, in order.
func merged(sources []*objectcache.ClusterObjects, after Cursor) iter.Seq[*objectcache.Object] {
	if len(sources) == 1 {
		return from(sources[0], after)
	}
	return func(yield func(*objectcache.Object) bool) {
		streams := make(streams, 0, len(sources))
		for _, source := range sources {
			next, stop := iter.Pull(from(source, after))
			defer stop()
			if first, ok := next(); ok {
				streams = append(streams, &stream{first: first, next: next})
			}
		}
		heap.Init(&streams)
		for len(streams) > 0 {
			s := streams[0]
			if !yield(s.first) {
				return
			}
			var ok bool
			if s.first, ok = s.next(); ok {
				heap.Fix(&streams, 0)
			} else {
				heap.Pop(&streams)
			}
		}
	}
}

// from returns the objects of a source after a position.
func from(source *objectcache.ClusterObjects, after Cursor) iter.Seq[*objectcache.Object] {
	if source.Source().Cluster > after.Cluster {
		return source.All("")
	}
	return func(yield func(*objectcache.Object) bool) {
		for object := range source.From("", after.Namespace, after.Name) {
			if CursorOf(object).Compare(after) > 0 && !yield(object) {
				return
			}
		}
	}
}

// stream is the rest of the objects of one source.
type stream struct {
	first *objectcache.Object
	next  func() (*objectcache.Object, bool)
}

// streams is a heap of streams by their first object. All are of one cluster.
type streams []*stream

func (s streams) Len() int           { return len(s) }
func (s streams) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s streams) Less(i, j int) bool { return compareObjects(s[i].first, s[j].first) < 0 }
func (s *streams) Push(x any)        { *s = append(*s, x.(*stream)) }

func (s *streams) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// compareObjects orders objects of one cluster.
func compareObjects(a, b *objectcache.Object) int {
	if order := cmp.Or(strings.Compare(a.Namespace(), b.Namespace()), strings.Compare(a.Name(), b.Name())); order != 0 {
		return order
	}
	return CursorOf(a).Compare(CursorOf(b))
}

// sourceKey identifies a source by what a key of the index contains.
type sourceKey struct{ cluster, kind, group, version string }

func keyOfSource(source *objectcache.Source) sourceKey {
	return sourceKey{source.Cluster, source.Kind.Kind, source.Kind.Group, source.Kind.Version}
}

// bySource returns the sources by their keys.
func bySource(sources []*objectcache.ClusterObjects) map[sourceKey]*objectcache.ClusterObjects {
	return maps.Collect(func(yield func(sourceKey, *objectcache.ClusterObjects) bool) {
		for _, objects := range sources {
			if !yield(keyOfSource(objects.Source()), objects) {
				return
			}
		}
	})
}
