package index

import (
	"container/heap"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	indexapi "github.com/blevesearch/bleve_index_api"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Sizes of the pages in which a search sorts its hits. Each page is one pass over the hits, so the
// size grows.
const (
	firstPage = 1024
	maxPage   = 32 * 1024
)

// minHitsForClusters is the number of hits from which a search sorts the hits of each cluster on their
// own, so that a page does not need all hits.
const minHitsForClusters = 4096

const operation = "searching the full-text index"

// Candidates implements Searcher.
func (f *FullText) Candidates(ctx context.Context, q *searchquery.Query, after Cursor, yield func(*objectcache.Object) bool) error {
	sources := possibleSources(f.options.Cache, q)
	condition := q.Condition()
	if len(sources) == 0 || condition.IsTrue() {
		return candidatesOf(ctx, sources, q, after, yield)
	}
	g, done, err := f.acquire()
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	defer done()
	// An index that is replaced after this line is not used, and a reader that is opened after this line
	// has what the feed stored before.
	indexed, others := f.split(sources)
	if len(indexed) == 0 {
		return candidatesOf(ctx, sources, q, after, yield)
	}
	reader, err := g.index.Reader()
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	defer release(reader)
	s := &search{reader: reader, q: q, sources: bySource(indexed), guard: func(call func() error) error { return f.guard(g, operation, call) }}
	err = s.guard(func() (err error) {
		s.hits, err = evaluation{ctx: ctx, reader: reader, sources: indexed}.evaluate(condition)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", operation, err)
	case s.hits == nil: // the index does not help
		return candidatesOf(ctx, sources, q, after, yield)
	}
	return withOthers(ctx, others, q, after, yield, func(yield func(*objectcache.Object) bool) error {
		return s.yieldAll(ctx, indexed, after, yield)
	})
}

// split returns the sources whose objects are in the index, and the others.
func (f *FullText) split(sources []*objectcache.ClusterObjects) (indexed, others []*objectcache.ClusterObjects) {
	f.mu.Lock()
	progress := f.progress
	f.mu.Unlock()
	for _, objects := range sources {
		if progress != nil && progress.IsEqual(*objects.Source()) {
			indexed = append(indexed, objects)
		} else {
			others = append(others, objects)
		}
	}
	return indexed, others
}

// withOthers yields the candidates of the index and those of other sources, which it reads from the
// cache, in order.
func withOthers(ctx context.Context, others []*objectcache.ClusterObjects, q *searchquery.Query, after Cursor, yield func(*objectcache.Object) bool,
	yieldIndexed func(yield func(*objectcache.Object) bool) error) error {
	if len(others) == 0 {
		return yieldIndexed(yield)
	}
	var failure error
	next, stop := iter.Pull(func(yield func(*objectcache.Object) bool) { failure = candidatesOf(ctx, others, q, after, yield) })
	defer stop()
	other, exists := next()
	isStopped := false
	err := yieldIndexed(func(object *objectcache.Object) bool {
		for ; exists && CursorOf(other).Compare(CursorOf(object)) < 0; other, exists = next() {
			if isStopped = !yield(other); isStopped {
				return false
			}
		}
		isStopped = failure != nil || !yield(object)
		return !isStopped
	})
	for ; err == nil && exists && !isStopped; other, exists = next() {
		isStopped = !yield(other)
	}
	return firstError(err, failure)
}

// search is one search in the index.
type search struct {
	reader  indexapi.IndexReader
	q       *searchquery.Query
	sources map[sourceKey]*objectcache.ClusterObjects
	// guard calls a function that uses the library.
	guard func(call func() error) error
	hits  *roaring.Bitmap
}

// yieldAll yields the objects of the hits in order.
func (s *search) yieldAll(ctx context.Context, sources []*objectcache.ClusterObjects, after Cursor, yield func(*objectcache.Object) bool) error {
	if s.hits.GetCardinality() < minHitsForClusters {
		_, err := s.yieldHits(ctx, s.hits, after, yield)
		return err
	}
	for ofCluster := range byCluster(sources, after) {
		var hits *roaring.Bitmap
		err := s.guard(func() (err error) {
			hits, err = evaluation{ctx: ctx, reader: s.reader}.ofSources(ofCluster)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", operation, err)
		}
		hits.And(s.hits)
		if more, err := s.yieldHits(ctx, hits, after, yield); !more || err != nil {
			return err
		}
	}
	return nil
}

// yieldHits yields the objects of some hits in order. It reports whether the caller wants more.
func (s *search) yieldHits(ctx context.Context, hits *roaring.Bitmap, after Cursor, yield func(*objectcache.Object) bool) (more bool, err error) {
	from := after.key()
	for size := firstPage; ; size = min(2*size, maxPage) {
		var keys []string
		err := s.guard(func() (err error) {
			keys, err = s.page(ctx, hits, from, size)
			return err
		})
		if err != nil {
			return false, fmt.Errorf("%s: %w", operation, err)
		}
		for _, key := range keys {
			// An object that was created again has two documents for a short time.
			if key == from {
				continue
			}
			from = key
			if object := s.objectOf(key); object != nil && !yield(object) {
				return false, nil
			}
			if err := ctx.Err(); err != nil {
				return false, err
			}
		}
		if len(keys) < size {
			return true, nil
		}
	}
}

// objectOf returns the cached object of a hit, or nil if it is gone or cannot match.
func (s *search) objectOf(key string) *objectcache.Object {
	position, ok := parseKey(key)
	if !ok {
		return nil
	}
	source := s.sources[sourceKey{position.Cluster, position.Kind.Kind, position.Kind.Group, position.Kind.Version}]
	if source == nil {
		return nil
	}
	object := source.Get(position.Namespace, position.Name)
	if object == nil || !CanMatch(s.q, object) {
		return nil
	}
	return object
}

// page returns the first keys of the hits after a key, in order.
func (s *search) page(ctx context.Context, hits *roaring.Bitmap, after string, size int) ([]string, error) {
	values, err := s.reader.DocValueReader([]string{keyField})
	if err != nil {
		return nil, err
	}
	p := smallest{after: after, size: size}
	if s.q.NeedsName() {
		p.accepts = s.acceptsName
	}
	id := make(indexapi.IndexInternalID, 8)
	count := 0
	for documents := hits.Iterator(); documents.HasNext(); {
		if count++; count%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		id.SetValue(uint64(documents.Next()))
		if err := values.VisitDocValues(id, p.visit); err != nil {
			return nil, err
		}
	}
	slices.Sort(p.keys)
	return p.keys, nil
}

// acceptsName reports whether the object of a key can match by its namespace and name.
func (s *search) acceptsName(key string) bool {
	position, ok := parseKey(key)
	if !ok {
		return false
	}
	return s.q.CanMatch(searchquery.Known{
		Cluster: position.Cluster, APIVersion: position.Kind.GroupVersion().String(), Kind: position.Kind.Kind,
		HasName: true, Namespace: position.Namespace, Name: position.Name,
	})
}

// smallest collects the smallest keys after a key: a heap with the largest key first.
type smallest struct {
	after   string
	size    int
	accepts func(key string) bool
	keys    []string
}

func (s *smallest) visit(_ string, key []byte) {
	// The comparisons do not allocate memory.
	if string(key) <= s.after || len(s.keys) == s.size && string(key) >= s.keys[0] {
		return
	}
	added := string(key)
	if s.accepts != nil && !s.accepts(added) {
		return
	}
	if len(s.keys) < s.size {
		heap.Push(s, added)
		return
	}
	s.keys[0] = added
	heap.Fix(s, 0)
}

func (s *smallest) Len() int           { return len(s.keys) }
func (s *smallest) Less(i, j int) bool { return s.keys[i] > s.keys[j] }
func (s *smallest) Swap(i, j int)      { s.keys[i], s.keys[j] = s.keys[j], s.keys[i] }
func (s *smallest) Push(x any)         { s.keys = append(s.keys, x.(string)) }

// Pop completes heap.Interface. A key is replaced in place, so Pop is not called.
func (s *smallest) Pop() any {
	last := len(s.keys) - 1
	popped := s.keys[last]
	s.keys = s.keys[:last]
	return popped
}
