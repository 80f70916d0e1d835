// Package index finds the cached objects that can match a search query.
//
// A Searcher returns candidates: a superset of the matches, which Matches decodes and compares with the
// query. Memory searches the cache. FullText narrows down the search with an index of all words on
// disk.
//
// Invariants:
//   - Candidates are cached objects, ordered by cluster, namespace, name and kind.
//   - The index contains only derived data. If the last process did not close it, or if it cannot be
//     opened, it is deleted, and the feed builds it again from the cache. Until then, searches read the
//     cache.
//   - A search needs memory for one page of candidates, not for all of them.
package index

import (
	"cmp"
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Searcher finds a query's candidates.
type Searcher interface {
	// Candidates calls yield for each object after the given cursor that can match the query, in order,
	// until yield returns false. If ctx ends, it returns ctx's error.
	Candidates(ctx context.Context, q *searchquery.Query, after Cursor, yield func(*objectcache.Object) bool) error
}

// Cursor is a position in the order of objects. The zero value precedes all objects.
type Cursor struct {
	Cluster, Namespace, Name string
	Kind                     schema.GroupVersionKind
}

// CursorOf returns the object's position.
func CursorOf(object *objectcache.Object) Cursor {
	source := object.Source()
	return Cursor{Cluster: source.Cluster, Namespace: object.Namespace(), Name: object.Name(), Kind: source.Kind}
}

// Compare compares two positions by cluster, namespace, name, kind, group and version.
func (c Cursor) Compare(other Cursor) int {
	return cmp.Or(
		strings.Compare(c.Cluster, other.Cluster), strings.Compare(c.Namespace, other.Namespace), strings.Compare(c.Name, other.Name),
		strings.Compare(c.Kind.Kind, other.Kind.Kind), strings.Compare(c.Kind.Group, other.Kind.Group),
		strings.Compare(c.Kind.Version, other.Kind.Version),
	)
}

// separator separates a key's parts. It sorts before all characters that names can contain, so keys
// have the same order as their positions.
const separator = "\x00"

// key returns the position as a string. Keys have the same order as their positions.
func (c Cursor) key() string {
	return strings.Join([]string{c.Cluster, c.Namespace, c.Name, c.Kind.Kind, c.Kind.Group, c.Kind.Version}, separator)
}

// parseKey returns the position that a key describes. It returns false if the key is malformed.
func parseKey(key string) (Cursor, bool) {
	parts := strings.Split(key, separator)
	if len(parts) != 6 {
		return Cursor{}, false
	}
	return Cursor{
		Cluster: parts[0], Namespace: parts[1], Name: parts[2],
		Kind: schema.GroupVersionKind{Kind: parts[3], Group: parts[4], Version: parts[5]},
	}, true
}
