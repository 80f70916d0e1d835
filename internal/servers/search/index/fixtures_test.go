package index

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func openIndex(t testing.TB, directory string, cache *objectcache.Cache) *FullText {
	t.Helper()
	f, err := Open(Options{Directory: directory, Cache: cache, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	f.SetProgress(progressOf{})
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// progressOf reports that all sources are indexed, except those of the cluster missing. If isEmpty is
// true, no source is indexed.
type progressOf struct {
	missing string
	isEmpty bool
}

func (p progressOf) IsEqual(source objectcache.Source) bool {
	return !p.isEmpty && source.Cluster != p.missing
}

// store makes the sink equal to the cache, as the feed does.
func store(t testing.TB, sink feed.Sink, cache *objectcache.Cache) {
	t.Helper()
	sources, err := sink.Sources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var changes []feed.Change
	for _, source := range sources {
		err := sink.Stored(t.Context(), source, func(id feed.ID, _ string) error {
			changes = append(changes, feed.Change{ID: id, Source: source})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := sink.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	add(t, sink, cache)
}

// add stores all objects in the cache.
func add(t testing.TB, sink feed.Sink, cache *objectcache.Cache) {
	t.Helper()
	var changes []feed.Change
	for _, kind := range cache.Kinds() {
		for _, objects := range kind.Snapshot().Clusters() {
			for object := range objects.All("") {
				changes = append(changes, feed.Change{ID: feed.IDOf(object), Source: *object.Source(), Object: object})
			}
		}
	}
	if err := sink.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
}

// verified returns the positions of at most limit matches after the given position.
func verified(ctx context.Context, t testing.TB, s Searcher, text string, after Cursor, limit int) (found []string) {
	t.Helper()
	q, err := searchquery.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	err = Matches(ctx, s, q, after, now, func(m Match) bool {
		found = append(found, describe(m.Object))
		return len(found) < limit
	})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return found
}

func describe(o *objectcache.Object) string {
	return fmt.Sprintf("%s/%s/%s/%s", o.Source().Cluster, o.Namespace(), o.Name(), o.Source().Kind.Kind)
}

func newObject(kind objectcachetest.Kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range fields {
		object.Object[key] = value
	}
	object.SetGroupVersionKind(kind.GroupVersionKind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}
