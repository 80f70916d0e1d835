package loop

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Index is an index of a cache. It finds the objects of some types by a key. All controllers of a
// process share it.
type Index struct {
	// Name identifies the index in the cache.
	Name string
	// Types are empty objects of the indexed types.
	Types []client.Object
	// Keys returns the keys under which an object is found.
	Keys client.IndexerFunc
}

// Matching returns the list option that selects the objects that have the given key.
func (i Index) Matching(key string) client.ListOption {
	return client.MatchingFields{i.Name: key}
}

// AddIndexes adds indexes to a cache that is not started. If the cache was made by ShareIndexes,
// AddIndexes skips the indexes that the cache already has.
func AddIndexes(to client.FieldIndexer, indexes ...Index) error {
	for _, index := range indexes {
		for _, object := range index.Types {
			// The context is not used, because IndexField does not wait before the cache is
			// started.
			if err := to.IndexField(context.Background(), object, index.Name, index.Keys); err != nil {
				return fmt.Errorf("indexing %T by %s: %w", object, index.Name, err)
			}
		}
	}
	return nil
}

// ShareIndexes returns a cache that adds each index only once, so that several controllers can add
// the same index.
func ShareIndexes(of cache.Cache) cache.Cache {
	return &sharingCache{Cache: of, added: map[typedIndex]struct{}{}}
}

type sharingCache struct {
	cache.Cache

	mu    sync.Mutex
	added map[typedIndex]struct{}
}

// typedIndex identifies an index for one Go type.
type typedIndex struct {
	goType reflect.Type
	name   string
}

// IndexField implements client.FieldIndexer.
func (s *sharingCache) IndexField(ctx context.Context, object client.Object, name string, keys client.IndexerFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	index := typedIndex{reflect.TypeOf(object), name}
	if _, ok := s.added[index]; ok {
		return nil
	}
	if err := s.Cache.IndexField(ctx, object, name, keys); err != nil {
		return err
	}
	s.added[index] = struct{}{}
	return nil
}
