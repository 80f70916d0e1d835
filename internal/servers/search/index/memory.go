package index

import (
	"container/heap"
	"context"
	"iter"
	"slices"
	"strings"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Memory finds candidates in the cache by cluster, kind, namespace, name and labels. Other terms do not
// narrow down the search, so Matches decodes all objects for a query that contains only text.
type Memory struct {
	cache *objectcache.Cache
}

// NewMemory returns a Searcher for the cache.
func NewMemory(cache *objectcache.Cache) *Memory { return &Memory{cache: cache} }

// Candidates implements Searcher.
func (m *Memory) Candidates(ctx context.Context, q *searchquery.Query, after Cursor, yield func(*objectcache.Object) bool) error {
	return possibleSources(m.cache, q).Candidates(ctx, q, after, yield)
}

// possibleSources returns the sources whose objects can match the query.
func possibleSources(cache *objectcache.Cache, q *searchquery.Query) Sources {
	var possible Sources
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

// KnownOf returns the properties that all of a source's objects share.
func KnownOf(source *objectcache.Source) searchquery.Known {
	return searchquery.Known{Cluster: source.Cluster, APIVersion: source.Kind.GroupVersion().String(), Kind: source.Kind.Kind}
}

// CanMatch reports whether the object can match the query, without decoding the object.
func CanMatch(q *searchquery.Query, object *objectcache.Object) bool {
	return q.CanMatch(knownOfObject(object))
}

func knownOfObject(object *objectcache.Object) searchquery.Known {
	known := KnownOf(object.Source())
	known.HasName, known.Namespace, known.Name = true, object.Namespace(), object.Name()
	known.Label = func(key string) (string, bool) { return object.Labels().Lookup(key) }
	return known
}

// Sources is a Searcher for a snapshot of several sources, which must be ordered by cluster.
type Sources []*objectcache.ClusterObjects

// contextCheckInterval is the number of objects after which a search checks its context.
const contextCheckInterval = 256

// Candidates implements Searcher.
func (s Sources) Candidates(ctx context.Context, q *searchquery.Query, after Cursor, yield func(*objectcache.Object) bool) error {
	count := 0
	for sources := range s.byCluster(after) {
		streams := make([]iter.Seq[*objectcache.Object], 0, len(sources))
		for _, source := range sources {
			streams = append(streams, objectsAfter(source, after))
		}
		for object := range merge(streams...) {
			if count++; count%contextCheckInterval == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if CanMatch(q, object) && !yield(object) {
				return nil
			}
		}
	}
	return ctx.Err()
}

// byCluster returns each cluster's sources, beginning with the given position's cluster.
func (s Sources) byCluster(after Cursor) iter.Seq[Sources] {
	return func(yield func(Sources) bool) {
		for rest := s; len(rest) > 0; {
			cluster := rest[0].Source().Cluster
			end := slices.IndexFunc(rest, func(o *objectcache.ClusterObjects) bool { return o.Source().Cluster != cluster })
			if end < 0 {
				end = len(rest)
			}
			if cluster >= after.Cluster && !yield(rest[:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// objectsAfter returns the source's objects after the given position.
func objectsAfter(source *objectcache.ClusterObjects, after Cursor) iter.Seq[*objectcache.Object] {
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

// merge returns the objects of all sequences in order. Each sequence must be ordered.
func merge(sequences ...iter.Seq[*objectcache.Object]) iter.Seq[*objectcache.Object] {
	if len(sequences) == 1 {
		return sequences[0]
	}
	return func(yield func(*objectcache.Object) bool) {
		rest := make(streams, 0, len(sequences))
		for _, sequence := range sequences {
			next, stop := iter.Pull(sequence)
			defer stop()
			if first, ok := next(); ok {
				rest = append(rest, &stream{first: first, next: next})
			}
		}
		heap.Init(&rest)
		for len(rest) > 0 {
			s := rest[0]
			if !yield(s.first) {
				return
			}
			var ok bool
			if s.first, ok = s.next(); ok {
				heap.Fix(&rest, 0)
			} else {
				heap.Pop(&rest)
			}
		}
	}
}

// stream is the rest of a sequence of objects.
type stream struct {
	first *objectcache.Object
	next  func() (*objectcache.Object, bool)
}

// streams is a heap of streams, ordered by their first objects.
type streams []*stream

func (s streams) Len() int           { return len(s) }
func (s streams) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s streams) Less(i, j int) bool { return CursorOf(s[i].first).Compare(CursorOf(s[j].first)) < 0 }
func (s *streams) Push(x any)        { *s = append(*s, x.(*stream)) }

func (s *streams) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}
