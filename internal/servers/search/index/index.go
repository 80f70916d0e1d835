// Package index answers: which cached objects can match a search query?
//
// Searcher is the interface of the back ends of queries. Memory reads the cache. FullText has the
// words of all objects in an index on disk. Both return candidates: a superset of the matches. The
// caller decodes each candidate and matches it with searchquery.
//
// Invariants:
//   - Candidates are objects of the cache, in the order of cluster, namespace, name and kind.
//   - A source that is not completely in the index on disk is searched in the cache.
//   - The index on disk is only a copy. If it is damaged, or was written by another version, it is
//     replaced by an empty one, and the feed stores all objects again.
//   - The memory of a search is bounded by a page, not by the number of matches.
package index

import (
	"cmp"
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Searcher finds candidates of a query.
type Searcher interface {
	// Candidates calls yield for each object after the cursor that can match the query, in order,
	// until yield returns false. It returns the error of ctx if ctx ends.
	Candidates(ctx context.Context, q *searchquery.Query, after Cursor, yield func(*objectcache.Object) bool) error
}

// Cursor is a position in the order of objects. The zero value is before all objects.
type Cursor struct {
	Cluster, Namespace, Name string
	Kind                     schema.GroupVersionKind
}

// CursorOf returns the position of an object.
func CursorOf(object *objectcache.Object) Cursor {
	source := object.Source()
	return Cursor{Cluster: source.Cluster, Namespace: object.Namespace(), Name: object.Name(), Kind: source.Kind}
}

// Compare compares two positions: by cluster, namespace, name, kind, group and version.
func (c Cursor) Compare(other Cursor) int {
	return cmp.Or(
		strings.Compare(c.Cluster, other.Cluster), strings.Compare(c.Namespace, other.Namespace), strings.Compare(c.Name, other.Name),
		strings.Compare(c.Kind.Kind, other.Kind.Kind), strings.Compare(c.Kind.Group, other.Kind.Group), strings.Compare(c.Kind.Version, other.Kind.Version),
	)
}

// keySeparator is less than all characters of names, so that keys have the order of their parts.
const keySeparator = "\x00"

// key returns the position as a text with the same order.
func (c Cursor) key() string {
	if c == (Cursor{}) {
		return ""
	}
	return strings.Join([]string{c.Cluster, c.Namespace, c.Name, c.Kind.Kind, c.Kind.Group, c.Kind.Version}, keySeparator)
}

// parseKey returns the position of a key. It returns false for a key that is no position.
func parseKey(key string) (Cursor, bool) {
	parts := strings.Split(key, keySeparator)
	if len(parts) != 6 {
		return Cursor{}, false
	}
	return Cursor{
		Cluster: parts[0], Namespace: parts[1], Name: parts[2],
		Kind: schema.GroupVersionKind{Kind: parts[3], Group: parts[4], Version: parts[5]},
	}, true
}
